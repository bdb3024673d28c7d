// Opens the trace in the page and connects its parts, which all show one selection.

import { Details } from "./details.js";
import { byId, setAttribute, setText } from "./dom.js";
import { Filter } from "./filter.js";
import { Differences, Findings } from "./findings.js";
import { clock } from "./format.js";
import { enableKeys } from "./keys.js";
import { Events, Logs } from "./lists.js";
import { Trace, decode } from "./model.js";
import { Rows, nameOf } from "./rows.js";
import { State } from "./state.js";
import { Tabs } from "./tabs.js";
import { View, duration, moment } from "./time.js";
import { Timeline } from "./timeline.js";

class Page {
  constructor(trace) {
    this.trace = trace;
    this.view = new View(trace.end);
    this.rows = new Rows(trace);
    this.selection = { event: -1, lane: this.rows.neighbour(0, 0), cursor: 0, finding: -1, highlighted: [] };
    this.related = null; // the lanes that are related to one, if only they are shown
    this.only = null; // the lanes that are shown, or null for all
    this.filter = new Filter(trace, () => this.rearrange());
    this.timeline = new Timeline(this, this);
    this.state = new State(this, (at) => this.moveCursor(at));
    this.tabs = new Tabs(() => this.show());
    const select = (event) => this.select(event);
    const moveCursor = (at) => this.moveCursor(at);
    this.events = new Events(this, select);
    this.panels = {
      findings: new Findings(this, (number) => this.selectFinding(number), moveCursor),
      event: new Details(this, this),
      state: this.state,
      events: this.events,
      log: new Logs(this, moveCursor),
    };
    if (trace.data.compare) this.panels.differences = new Differences(this, select);
    this.tabs.allow("differences", Boolean(trace.data.compare));
    this.describe();
    this.enableButtons();
    enableKeys(this);
    this.timeline.resized();
    this.rearrange();
    if (trace.findings.length) this.selectFinding(0);
    this.showActive();
  }

  describe() {
    const { data, end } = this.trace;
    setText(byId("title"), data.title);
    setText(byId("subtitle"), data.subtitle);
    setText(byId("when"), `${duration(end)}, from ${new Date(data.start_ns / 1e6).toISOString().slice(0, 10)} ${clock(data.start_ns / 1e6)}`);
    byId("result").hidden = !data.result;
    byId("result").dataset.result = data.result;
    setText(byId("result"), data.result === "failed" ? "✗ failed" : "✓ passed");
  }

  enableButtons() {
    byId("zoom-in").addEventListener("click", () => this.zoom(0.5));
    byId("zoom-out").addEventListener("click", () => this.zoom(2));
    byId("zoom-fit").addEventListener("click", () => this.fit());
    byId("scheme").addEventListener("click", () => this.switchScheme());
    byId("filter-clear").addEventListener("click", () => this.filter.clear());
    byId("related").addEventListener("click", () => this.toggleRelated());
  }

  /** Shows the lanes that the search and the related lanes leave. */
  rearrange() {
    if (!this.timeline) return; // the filter applies itself before the other parts exist
    const { lanes } = this.filter;
    this.only = this.related && lanes ? new Set([...lanes].filter((lane) => this.related.has(lane))) : this.related ?? lanes;
    this.rows.arrange(this.only);
    byId("lanes-none").hidden = this.rows.all.length > 0;
    this.events.filtered();
    this.timeline.rearranged();
    this.show();
  }

  show() {
    this.timeline.request();
    for (const [name, panel] of Object.entries(this.panels)) if (name === "findings" || this.tabs.isShown(name)) panel.show();
  }

  /** Selects an event, and moves the view until it is visible. */
  select(event) {
    this.choose(event, this.trace.lane[event]);
    const [start, until] = [this.trace.start[event], this.trace.until[event]];
    this.open([event]);
    this.view.reveal(start, until);
    this.selection.cursor = until - start < this.view.span / 2 ? until : start; // of a long bar, the change at its start
    this.tabs.open("event", ["event", "events", "differences"]);
    this.show();
    setText(byId("announced"), this.inWords(event));
  }

  choose(event, lane) {
    this.selection.event = event;
    this.selection.lane = lane;
    if (!this.trace.findings[this.selection.finding]?.events.includes(event)) this.unhighlight();
  }

  unhighlight() {
    this.selection.finding = -1;
    this.selection.highlighted = [];
  }

  /** Makes the lanes of events visible. */
  open(events) {
    const { trace, rows } = this;
    if (events.some((event) => !rows.row(trace.lane[event]))) {
      this.related = null;
      setAttribute(byId("related"), "aria-pressed", "false");
      this.filter.clear();
    }
    for (const event of events) {
      const { group } = trace.lanes[trace.lane[event]];
      if (rows.collapsed.has(group)) this.toggleGroup(group);
    }
    this.timeline.scrollTo(trace.lane[events[0]]);
  }

  selectFinding(number) {
    const finding = this.trace.findings[number];
    if (!finding) return;
    this.selection.finding = number;
    this.selection.highlighted = finding.events;
    const event = this.trace.eventOf(finding);
    this.selection.event = event;
    if (event >= 0) {
      this.selection.lane = this.trace.lane[event];
      this.open([event, ...finding.events]);
      this.view.focus(Math.min(finding.at, ...finding.events.map((each) => this.trace.start[each])), Math.max(finding.at, ...finding.events.map((each) => this.trace.until[each])));
    } else this.view.focus(finding.at, finding.at);
    this.selection.cursor = finding.at;
    if (finding.events.length) this.tabs.open("event", ["findings", "event", "state", "differences"]);
    this.show();
    setText(byId("announced"), `Finding ${number + 1} of ${this.trace.findings.length}: ${finding.title}`);
  }

  /** Without the idle time before and after the clients and the first finding. */
  showActive() {
    let [from, until] = this.trace.active();
    const [finding] = this.trace.findings;
    if (finding) [from, until] = [Math.min(from, finding.at), Math.max(until, finding.at)];
    const margin = (until - from) * 0.03;
    if (until - from > this.trace.end * 0.85) this.view.fit();
    else this.view.show(from - margin, until + margin);
    this.timeline.request();
  }

  selectLane(lane) {
    if (!this.trace.lanes[lane]) return; // a trace without lanes
    this.choose(this.trace.nearest(lane, this.selection.cursor, (event) => this.filter.matchesEvent(event)), lane);
    this.tabs.open("events", ["events", "event", "state", "log", "differences"]);
    this.timeline.scrollTo(lane);
    this.show();
    setText(byId("announced"), `Lane ${nameOf(this.trace.lanes[lane])}, ${this.trace.lanes[lane].events.length} events`);
  }

  /** Moves the cursor; the event stays selected. */
  moveCursor(at, lane = this.selection.lane) {
    this.selection.cursor = Math.min(Math.max(at, 0), this.trace.end);
    this.selection.lane = lane;
    const x = this.view.x(this.selection.cursor);
    if (x < 0 || x > this.view.width) this.view.reveal(at, at);
    this.tabs.open("state", ["state", "log", "events"]);
    this.show();
  }

  preview(event, { clientX, clientY }) {
    const node = byId("preview");
    node.hidden = event < 0;
    if (event < 0) return;
    const { trace } = this;
    const more = trace.isMark(event) ? "" : ` · ${trace.outcome(event)} · ${duration(trace.until[event] - trace.start[event])}`;
    setText(node, trace.text(event) + more);
    const { width } = node.getBoundingClientRect();
    node.style.transform = `translate(${Math.max(Math.min(clientX + 12, innerWidth - width - 8), 0)}px, ${clientY + 16}px)`;
  }

  inWords(event) {
    const { trace } = this;
    const more = trace.isMark(event) ? "" : `${trace.outcome(event)}, ${duration(trace.until[event] - trace.start[event])}, `;
    return `${trace.text(event)}, ${more}at ${moment(trace.start[event])}, lane ${nameOf(trace.lanes[trace.lane[event]])}`;
  }

  stepFinding(by) {
    const { length } = this.trace.findings;
    if (!length) return;
    const { finding } = this.selection;
    this.selectFinding(finding < 0 ? (by > 0 ? 0 : length - 1) : (finding + by + length) % length);
  }

  stepError(by) {
    this.stepIn(this.trace.errors, by);
  }

  stepMatch(by) {
    this.stepIn(this.filter.found, by);
  }

  /** Selects the next event of a list by time: after the selected event, or else after the cursor. */
  stepIn(events, by) {
    const { trace, selection } = this;
    if (!events.length) return;
    const place = events.indexOf(selection.event);
    const at = selection.event >= 0 ? trace.start[selection.event] : selection.cursor;
    let next = place >= 0 ? place + by : by > 0
      ? events.findIndex((event) => trace.start[event] >= at) : events.findLastIndex((event) => trace.start[event] <= at);
    if (place < 0 && next < 0) next = by > 0 ? 0 : events.length - 1;
    this.select(events[(next + events.length) % events.length]);
  }

  stepEvent(by) {
    const { trace, selection, filter } = this;
    const events = trace.eventsOf(selection.lane).filter((event) => filter.matchesEvent(event));
    if (!events.length) return;
    const place = events.indexOf(selection.event);
    const next = place < 0 ? events.indexOf(trace.nearest(selection.lane, selection.cursor, (event) => filter.matchesEvent(event)))
      : Math.min(Math.max(place + by, 0), events.length - 1);
    this.select(events[next]);
  }

  stepLane(by) {
    const lane = this.rows.neighbour(this.selection.lane, by);
    const event = this.trace.nearest(lane, this.selection.cursor, (each) => this.filter.matchesEvent(each));
    if (event < 0) {
      this.selectLane(lane);
      return;
    }
    const { cursor } = this.selection;
    this.select(event);
    this.selection.cursor = cursor; // several steps keep the time
    this.timeline.request();
  }

  zoom(factor) {
    const x = this.view.x(this.selection.cursor);
    const isVisible = x >= 0 && x <= this.view.width;
    this.view.zoom(factor, isVisible ? this.selection.cursor : this.view.start + this.view.span / 2);
    this.timeline.request();
  }

  fit() {
    this.view.fit();
    this.timeline.request();
  }

  toggleGroup(group) {
    this.rows.toggle(group);
    this.rearrange();
  }

  toggleRelated() {
    const lane = this.trace.lanes[this.selection.lane];
    if (!lane) return;
    this.related = this.related ? null : this.trace.relatedTo(lane.number);
    setAttribute(byId("related"), "aria-pressed", this.related ? "true" : "false");
    this.rearrange();
    this.timeline.scrollTo(lane.number);
  }

  clear() {
    this.related = null;
    setAttribute(byId("related"), "aria-pressed", "false");
    this.unhighlight();
    this.selection.event = -1;
    this.filter.clear();
  }

  switchScheme() {
    const root = document.documentElement;
    const isDark = root.style.colorScheme ? root.style.colorScheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.style.colorScheme = isDark ? "light" : "dark";
    this.timeline.recolour();
  }
}

async function open() {
  new Page(new Trace(await decode(byId("trace").textContent)));
  document.documentElement.dataset.ready = "true";
}

open();
