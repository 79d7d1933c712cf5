import { tick } from "./clock.js";
import { Live } from "./live.js";
import { mark, moves, spoken, standings } from "./moves.js";

const board = document.querySelector("#board");
const announce = document.querySelector("#announce");
let shown = null;

function changed(root) {
  const now = standings(root);
  const list = moves(shown, now);
  if (list.length) {
    mark(root, list);
    announce.textContent = `New ranking: ${spoken(list)}.`;
  }
  shown = now;
  tick(root);
}

const live = new Live(board, changed);

// Defaults stay out of the address; the server names the address of what it shows.
function chosen(form) {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  return query.size ? `?${query}` : "";
}

async function choose(form) {
  await live.show(chosen(form));
  const { query } = live.root.firstElementChild?.dataset ?? {};
  if (query !== undefined) history.replaceState(null, "", board.dataset.page + query);
}

board.addEventListener("change", (event) => {
  const form = event.target.closest("#controls");
  if (form) choose(form);
});
board.addEventListener("submit", (event) => {
  if (event.target.id !== "controls") return;
  event.preventDefault();
  choose(event.target);
});
addEventListener("popstate", () => live.show("", false));

if (live.root.firstElementChild) changed(live.root.firstElementChild);
live.refresh();
setInterval(tick, 1000);
