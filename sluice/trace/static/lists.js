// The panels with lists: the events of a lane (also the alternative to the canvas for screen readers), and the log.

import { byId, button, el, setText } from "./dom.js";
import { count, counted } from "./format.js";
import { TONES } from "./model.js";
import { SIGNS, TONE_NAMES } from "./palette.js";
import { nameOf } from "./rows.js";
import { duration, moment } from "./time.js";

const PAGE = 200;

/** A list of which a page around one place is in the document. */
class Paged {
  constructor(id, row) {
    this.list = byId(id);
    this.row = row;
    this.nav = el("p", { class: "pages" });
    this.list.after(this.nav);
    this.key = null;
  }

  show(items, place, key) {
    const first = Math.max(Math.min(Math.floor(Math.max(place, 0) / PAGE) * PAGE, items.length - 1), 0);
    this.render(items, first, `${key} ${first}`);
    const at = place - first;
    [...this.list.children].forEach((node, number) => node.classList.toggle("current", number === at));
    const current = this.list.children[at];
    if (current && this.place !== `${this.key} ${place}`) current.scrollIntoView({ block: "nearest" });
    this.place = `${this.key} ${place}`;
  }

  render(items, first, key) {
    if (this.key === key) return;
    this.key = key;
    this.list.replaceChildren(...items.slice(first, first + PAGE).map((item) => this.row(item)));
    const last = Math.min(first + PAGE, items.length);
    const turn = (by) => {
      this.render(items, first + by, `${key} turned ${first + by}`);
      this.list.scrollTop = 0;
    };
    this.nav.hidden = items.length <= PAGE;
    this.nav.replaceChildren(
      button("Earlier", () => turn(-PAGE), { disabled: first === 0 }),
      `${count(first + 1)} to ${count(last)} of ${count(items.length)}`,
      button("Later", () => turn(PAGE), { disabled: last === items.length }));
  }
}

export class Events {
  constructor({ trace, selection, filter }, select) {
    this.trace = trace;
    this.selection = selection;
    this.filter = filter;
    this.scope = byId("events-scope");
    this.scope.addEventListener("change", () => this.show());
    this.version = 0;
    this.all = null;
    this.paged = new Paged("events-list", (event) => {
      const tone = TONES[trace.tone[event]];
      const took = trace.isMark(event) ? "" : duration(trace.until[event] - trace.start[event]);
      return el("li", {}, el("button", { type: "button", class: "row", click: () => select(event) },
        el("time", {}, moment(trace.start[event])),
        el("span", { class: "sign", "data-tone": tone }, trace.isMark(event) ? trace.glyph(event) : SIGNS[tone] || "·", el("span", { class: "unseen" }, TONE_NAMES[tone])),
        el("span", { class: "text" }, trace.text(event), this.isAll ? el("small", {}, nameOf(trace.lanes[trace.lane[event]])) : null),
        el("span", { class: "took" }, took)));
    });
  }

  filtered() {
    this.version += 1;
    this.all = null;
  }

  show() {
    const { trace, selection, filter } = this;
    const isAll = this.scope.value === "all" || (filter.lanes !== null && !filter.lanes.has(selection.lane));
    this.isAll = isAll;
    if (isAll) this.all ??= trace.byTime((event) => filter.matchesEvent(event));
    const events = isAll ? this.all : trace.eventsOf(selection.lane).filter((event) => filter.matchesEvent(event));
    const lane = trace.lanes[selection.lane];
    setText(byId("events-what"), `${isAll || !lane ? "All lanes" : nameOf(lane)}: ${counted(events.length, "event")}${filter.matches ? " that match" : ""}`);
    this.paged.show(events, events.indexOf(selection.event), `${isAll ? "all" : selection.lane} ${this.version}`);
  }
}

export class Logs {
  constructor({ trace, selection }, moveCursor) {
    this.selection = selection;
    this.lines = trace.data.logs;
    byId("log-none").hidden = this.lines.length > 0;
    this.paged = new Paged("log-list", ([at, level, logger, text]) => el("li", {},
      el("button", { type: "button", class: "row", click: () => moveCursor(at) },
        el("time", {}, moment(at)), el("span", { class: "level", "data-level": level.toLowerCase() }, level),
        el("span", { class: "text" }, text, el("small", {}, logger)))));
  }

  show() {
    this.paged.show(this.lines, this.lines.findLastIndex(([at]) => at <= this.selection.cursor), "log");
  }
}
