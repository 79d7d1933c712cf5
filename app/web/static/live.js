// Keeps a page's fragment fresh: asks as soon as the board's stream tells of a change, and now and then all the same;
// every two seconds where there is no stream. Asks with the ETag, pauses while the tab is hidden.
import { askForKey, headers } from "./key.js";
import { Stream } from "./stream.js";

const INTERVAL = 2000;
const TOLD = 15000;
const LONGEST = 30000;

export class Live {
  constructor(board, changed = () => {}) {
    this.board = board;
    this.root = document.querySelector("#live");
    this.connection = document.querySelector("#connection");
    this.changed = changed;
    this.parts = new Map();
    this.wait = INTERVAL;
    this.etag = null;
    for (const part of this.root.querySelectorAll("[data-part]")) this.parts.set(part.dataset.part, part.outerHTML);
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh());
    const name = board.dataset.board;
    this.stream = new Stream(`/v1/boards/${name}/stream`, () => headers(name), () => this.told());
  }

  // News while an answer is on its way has it asked for once more afterwards: were each to end it, none would ever
  // arrive from a board that changes faster than it answers.
  told() {
    if (this.request) this.again = true;
    else if (!this.locked) this.refresh();
  }

  get address() {
    return this.board.dataset.source + location.search;
  }

  // A new choice: what is being fetched is out of date.
  async show(search, push = true) {
    if (push) history.pushState(null, "", this.board.dataset.page + search);
    this.etag = null;
    this.root.setAttribute("aria-busy", "true");
    await this.refresh();
    this.root.removeAttribute("aria-busy");
  }

  async refresh() {
    clearTimeout(this.timer);
    this.request?.abort();
    const request = (this.request = new AbortController());
    this.again = false;
    try {
      await this.take(request.signal);
      if (!this.locked) this.stream.start();
      this.wait = INTERVAL;
      this.connection.textContent = "";
    } catch (error) {
      if (request.signal.aborted) return;
      this.wait = Math.min(2 * this.wait, LONGEST);
      this.connection.textContent = "The server does not answer. What you see may be out of date; trying again.";
    }
    if (this.request !== request) return;
    this.request = null;
    if (!this.locked) this.plan();
  }

  plan() {
    const wait = this.stream.open && this.wait === INTERVAL ? (this.again ? 0 : TOLD) : this.wait;
    this.timer = setTimeout(() => (document.hidden ? this.plan() : this.refresh()), wait);
  }

  async take(signal) {
    const known = this.etag ? { "If-None-Match": this.etag } : {};
    const answer = await fetch(this.address, {
      headers: { ...headers(this.board.dataset.board), ...known },
      cache: "no-store",
      signal,
    });
    if (answer.status === 304) return;
    if (answer.status === 401 || answer.status === 403) return this.lock(answer.status);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const text = await answer.text();
    this.etag = answer.headers.get("ETag");
    this.swap(new DOMParser().parseFromString(text, "text/html").body.firstElementChild);
  }

  lock(status) {
    const had = "Authorization" in headers(this.board.dataset.board);
    this.locked = true;
    this.stream.stop();
    this.root.replaceChildren();
    this.parts.clear();
    const reasons = { 401: "This key is not known.", 403: "This key may not read this board." };
    askForKey(this.board.dataset.board, had ? reasons[status] : "", () => {
      this.locked = false;
      this.refresh();
    });
  }

  // Replace only the parts whose markup changed, so that focus and scroll stay where they are.
  swap(next) {
    const old = this.root.firstElementChild;
    const focused = document.activeElement?.id;
    if (old) this.swapParts(old, next);
    else this.root.replaceChildren(next);
    for (const part of next.querySelectorAll("[data-part]")) this.parts.set(part.dataset.part, part.outerHTML);
    if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
    this.board.querySelector("h1").textContent = next.dataset.title;
    this.changed(this.root.firstElementChild);
  }

  swapParts(old, next) {
    for (const part of next.querySelectorAll("[data-part]")) {
      const name = part.dataset.part;
      if (this.parts.get(name) === part.outerHTML) continue;
      this.parts.set(name, part.outerHTML);
      old.querySelector(`[data-part="${name}"]`).replaceWith(part.cloneNode(true));
    }
    for (const [name, value] of Object.entries(next.dataset)) old.dataset[name] = value;
  }
}
