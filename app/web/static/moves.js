// What moved between two snapshots of one view.
const read = (row) => {
  const { item, title, rank, score, low, high } = row.dataset;
  const value = (text) => (text === "" ? null : Number(text));
  return { item, title, rank: value(rank), score: value(score), low: value(low), high: value(high) };
};

export function standings(root) {
  const rows = [...root.querySelectorAll("tr[data-item]")];
  return { snapshot: root.dataset.snapshot, query: root.dataset.query, items: new Map(rows.map((r) => [r.dataset.item, read(r)])) };
}

// A move counts as more than noise only where the new score leaves the interval that the item had.
export function moves(before, after) {
  if (!before || before.snapshot === after.snapshot || before.query !== after.query) return [];
  return [...after.items.values()].flatMap((now) => {
    const then = before.items.get(now.item);
    if (!then || then.rank === null || now.rank === null || then.rank === now.rank) return [];
    const beyond = then.low !== null && (now.score < then.low || now.score > then.high);
    return [{ ...now, from: then.rank, by: then.rank - now.rank, beyond }];
  });
}

export function mark(root, list) {
  for (const move of list) {
    const row = root.querySelector(`tr[data-item="${CSS.escape(move.item)}"]`);
    const badge = document.createElement("span");
    const noise = move.beyond ? "beyond its former interval" : "within its former interval";
    badge.className = move.beyond ? "move beyond" : "move";
    badge.textContent = `${move.by > 0 ? "▲" : "▼"}${Math.abs(move.by)}`;
    badge.title = `was ${move.from}; ${noise}`;
    row.classList.add("moved");
    row.querySelector(".between").after(badge);
  }
}

export function spoken(list) {
  return list.map((m) => `${m.title} moved from place ${m.from} to ${m.rank}`).join(", ");
}
