// The stream of changes: server-sent events, read with fetch, as an EventSource cannot send a token.

import { open, problemOf } from "./api.js";

const AGAIN_MS = [500, 1000, 2000, 3000];
const SILENT_MS = 10_000; // the broker sends at least a comment twice a second
const HIDDEN_MS = 15_000; // a hidden page closes the stream

export class Stream {
  /**
   * Callbacks: `on.begin()` before a message with all data, `on.message(message)`, `on.live()`, `on.gone()`, and
   * `on.refused(problem)` if the broker rejects the view.
   */
  constructor(on) {
    this.on = on;
    this.query = "";
    this.tries = 0;
    this.reader = null; // aborts the current stream
    this.timer = 0;
    document.addEventListener("visibilitychange", () => this.seen());
  }

  subscribe(query) {
    if (query === this.query && this.reader !== null) return;
    this.query = query;
    this.begin();
  }

  begin() {
    this.end();
    const reader = new AbortController();
    this.reader = reader;
    this.read(reader)
      .catch((error) => error)
      .then((error) => {
        if (this.reader !== reader) return; // a newer stream has started
        if (error?.status === 400) {
          this.on.refused(error.message);
          return;
        }
        this.on.gone();
        this.timer = setTimeout(() => this.begin(), AGAIN_MS[Math.min(this.tries++, AGAIN_MS.length - 1)]);
      });
  }

  end() {
    clearTimeout(this.timer);
    this.reader?.abort();
    this.reader = null;
  }

  async read(reader) {
    const answer = await open(`/api/v1/stream?${this.query}`, { signal: reader.signal });
    if (!answer.ok) throw await problemOf(answer);
    this.on.begin();
    const bytes = answer.body.getReader();
    const text = new TextDecoder();
    let rest = "";
    let watchdog = 0;
    try {
      for (;;) {
        clearTimeout(watchdog);
        watchdog = setTimeout(() => bytes.cancel(), SILENT_MS);
        const { done, value } = await bytes.read();
        if (done || this.reader !== reader) return;
        const events = (rest + text.decode(value, { stream: true })).split("\n\n");
        rest = events.pop();
        this.tries = 0;
        this.on.live();
        for (const event of events) {
          if (event.startsWith("data: ")) this.on.message(JSON.parse(event.slice(6)));
        }
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  seen() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => this.end(), HIDDEN_MS);
    else if (this.reader === null) this.begin();
  }
}
