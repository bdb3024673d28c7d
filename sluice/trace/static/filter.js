// The search of events: words, client, API, errors only.

import { byId, el, setText } from "./dom.js";
import { count, countOf } from "./format.js";
import { TONES } from "./model.js";

const TYPING_MS = 150;
const ERRORS = new Set(["error", "lost", "fault"].map((tone) => TONES.indexOf(tone)));

export class Filter {
  constructor(trace, changed) {
    this.trace = trace;
    this.changed = changed;
    this.form = byId("filter");
    this.counted = byId("filter-count");
    this.matches = null; // one byte per event, or null if all match
    this.lanes = null; // the lanes with matches
    this.found = []; // the matches by time
    this.apis = trace.sides.map((side) => side.texts.map((text) => text.split(" ", 1)[0]));
    this.fill("client", new Set(clientLanes(trace).map((lane) => lane.owner)));
    this.fill("api", this.usedApis());
    let typing = 0;
    this.form.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.apply(), TYPING_MS);
    });
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.apply();
  }

  fill(name, values) {
    const names = [...values].filter(Boolean).sort();
    this.form.elements[name].append(...names.map((value) => el("option", { value }, value)));
    this.form.elements[name].closest("label").hidden = names.length < 2;
  }

  usedApis() {
    const used = new Set();
    const { trace } = this;
    for (const lane of clientLanes(trace)) {
      for (const event of lane.events) if (!trace.isMark(event)) used.add(this.api(event));
    }
    return used;
  }

  api(event) {
    const { columns, at } = this.trace.columns(event);
    return this.apis[this.trace.sideOf(event)][columns.text[at]];
  }

  matchesEvent(event) {
    return this.matches === null || this.matches[event] === 1;
  }

  clear() {
    this.form.reset();
    this.apply();
  }

  apply() {
    const { text, client, api, errors } = Object.fromEntries(new FormData(this.form));
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const isActive = words.length > 0 || client || api || errors;
    this.matches = isActive ? this.search(words, client, api, errors) : null;
    this.found = isActive ? this.trace.byTime((event) => this.matches[event] === 1) : [];
    this.lanes = isActive ? new Set(this.found.map((event) => this.trace.lane[event])) : null;
    setText(this.counted, isActive ? `${countOf(this.found.length, this.trace.count)} match` : `${count(this.trace.count)} events`);
    byId("filter-clear").hidden = !isActive;
    this.changed();
  }

  search(words, client, api, errors) {
    const { trace } = this;
    const matches = new Uint8Array(trace.count);
    const tables = trace.sides.map((side) => words.map((word) => tablesOf(side, word)));
    const lanes = trace.lanes.map((lane) => words.map((word) => `${lane.group} ${lane.owner} ${lane.label} ${lane.detail}`.toLowerCase().includes(word)));
    for (let event = 0; event < trace.count; event++) {
      const number = trace.lane[event];
      const lane = trace.lanes[number];
      if (client && lane.owner !== client) continue;
      if (errors && !ERRORS.has(trace.tone[event])) continue;
      if (api && (trace.isMark(event) || lane.group !== "client" || this.api(event) !== api)) continue;
      if (words.length) {
        const { columns, at } = trace.columns(event);
        const found = tables[lane.side].every(({ texts, outcomes, details }, word) => lanes[number][word]
          || texts[columns.text[at]] || (columns.outcome && (outcomes[columns.outcome[at]] || details[columns.detail[at]])));
        if (!found) continue;
      }
      matches[event] = 1;
    }
    return matches;
  }
}

/** Which texts, outcomes and details have a word: events refer to them by number. */
function tablesOf(side, word) {
  return {
    texts: side.texts.map((text) => text.toLowerCase().includes(word)),
    outcomes: side.outcomes.map((outcome) => outcome.name.toLowerCase().includes(word)),
    details: side.details.map((rows) => rows.some(([, value]) => value.toLowerCase().includes(word))),
  };
}

function clientLanes(trace) {
  return trace.lanes.filter((lane) => lane.group === "client");
}
