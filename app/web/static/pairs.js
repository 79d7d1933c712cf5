import { tick } from "./clock.js";
import { Live } from "./live.js";

const board = document.querySelector("#board");
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const live = new Live(board, tick);

// The readout beside the map says in words what the cell under the pointer or the focus holds.
function tell(cell) {
  const readout = document.querySelector("#readout");
  if (!cell?.dataset.says || !readout) return;
  readout.querySelector(".says").textContent = cell.dataset.says;
  readout.querySelector(".counts").textContent = cell.dataset.counts;
}

function step(cell, [down, right]) {
  const row = cell.parentElement.parentElement.rows[cell.parentElement.rowIndex - 1 + down];
  const next = row?.cells[cell.cellIndex + right];
  if (next?.tagName !== "TD") return;
  cell.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

board.addEventListener("pointerover", (event) => tell(event.target.closest("td")));
board.addEventListener("focusin", (event) => tell(event.target.closest("td")));
board.addEventListener("keydown", (event) => {
  const cell = event.target.closest(".map td");
  if (!cell || !(event.key in STEPS)) return;
  event.preventDefault();
  step(cell, STEPS[event.key]);
});
board.addEventListener("change", (event) => {
  const form = event.target.closest("#controls");
  if (!form) return;
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  live.show(query.size ? `?${query}` : "");
});
addEventListener("popstate", () => live.show("", false));
live.refresh();
setInterval(tick, 1000);
