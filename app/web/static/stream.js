// Tells when a board changed: reads its server-sent events. Not EventSource, which sends no key.
const AGAIN = 2000;
const LONGEST = 30000;

export class Stream {
  constructor(address, headers, changed) {
    Object.assign(this, { address, headers, changed, open: false, wait: AGAIN, last: null });
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stop() : this.start()));
  }

  // A hidden tab listens to nothing: browsers allow few connections to one server.
  start() {
    if (this.request || document.hidden) return;
    clearTimeout(this.timer);
    this.request = new AbortController();
    this.listen(this.request).catch(() => {}).finally(() => this.ended());
  }

  stop() {
    clearTimeout(this.timer);
    this.request?.abort();
  }

  ended() {
    this.request = null;
    this.open = false;
    this.wait = Math.min(2 * this.wait, LONGEST);
    this.timer = setTimeout(() => this.start(), this.wait);
  }

  async listen({ signal }) {
    const resume = this.last ? { "Last-Event-ID": this.last } : {};
    const answer = await fetch(this.address, { headers: { ...this.headers(), ...resume }, cache: "no-store", signal });
    if (!answer.ok || !answer.body) return;
    this.open = true;
    this.wait = AGAIN / 2;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ""; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      const events = (text + value).split("\n\n");
      text = events.pop();
      for (const event of events) this.take(event);
    }
  }

  take(event) {
    const id = event.match(/^id: (.*)$/m)?.[1];
    if (!id) return;
    if (id !== this.last) this.changed();
    this.last = id;
  }
}
