import { tick } from "./clock.js";
import { Live } from "./live.js";

const live = new Live(document.querySelector("#board"), tick);
live.refresh();
setInterval(tick, 1000);
