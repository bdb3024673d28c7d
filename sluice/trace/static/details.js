// The panel of the selected event.

import { byId, button, el } from "./dom.js";
import { clock } from "./format.js";
import { SIGNS } from "./palette.js";
import { TONES } from "./model.js";
import { nameOf } from "./rows.js";
import { duration, moment } from "./time.js";

export class Details {
  constructor({ trace, selection }, act) {
    this.trace = trace;
    this.selection = selection;
    this.act = act;
    this.body = byId("event-body");
    this.shown = null;
  }

  show() {
    const { event, finding } = this.selection;
    const key = `${event} ${finding}`;
    if (this.shown === key) return;
    this.shown = key;
    byId("event-none").hidden = event >= 0;
    this.body.replaceChildren(...(event < 0 ? [] : this.parts(event)));
  }

  parts(event) {
    const { trace } = this;
    const tone = TONES[trace.tone[event]];
    const lane = trace.lanes[trace.lane[event]];
    const difference = trace.differences.get(event);
    const findings = trace.findings.map((each, number) => ({ ...each, number })).filter((each) => each.events.includes(event));
    const sign = trace.isMark(event) ? trace.glyph(event) : SIGNS[tone];
    return [
      el("h3", { class: "what" }, trace.text(event)),
      el("p", { class: "chips" }, el("span", { class: "chip", "data-tone": tone }, sign ? el("b", {}, sign) : null, trace.outcome(event)),
        button(nameOf(lane), () => this.act.selectLane(lane.number), { class: "plain", title: "Select the lane" }),
        trace.sides.length > 1 ? el("span", { class: "side" }, lane.side ? "other trace" : "this trace") : null),
      trace.isMark(event) ? null : this.timing(event),
      difference ? el("p", { class: "note" }, el("b", {}, "≠ "), difference) : null,
      ...findings.map((each) => el("p", { class: "note" }, button(`Finding ${each.number + 1}: ${each.title}`, () => this.act.selectFinding(each.number), { class: "plain" }))),
      this.attempts(event),
      el("dl", { class: "facts" }, ...this.facts(event).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
      this.others(event),
    ].filter(Boolean);
  }

  /** A bar of the parts of the time, and its legend. */
  timing(event) {
    const { trace } = this;
    const took = trace.until[event] - trace.start[event];
    const parked = Math.min(trace.parked[event], took);
    const parts = [["handled", took - parked], ["parked", parked], ["throttled", trace.throttle[event]]].filter(([, us]) => us > 0);
    return el("div", { class: "timing" },
      el("div", { class: "times", "aria-hidden": "true" }, ...parts.map(([name, us]) => {
        const part = el("i", { "data-part": name });
        part.style.flexGrow = String(us);
        return part;
      })),
      el("p", {}, el("b", {}, duration(took)), ...(parts.length > 1 ? parts : []).map(([name, us]) => el("span", { "data-part": name }, `${name} ${duration(us)}`))));
  }

  attempts(event) {
    const { trace } = this;
    const all = trace.attempts(event);
    if (all.length < 2) return null;
    return el("div", { class: "attempts" }, el("h4", {}, `Attempt ${all.indexOf(event) + 1} of ${all.length}`),
      el("ol", {}, ...all.map((each, number) => el("li", {},
        el("button", { type: "button", class: "row", "aria-current": each === event ? "true" : null, click: () => this.act.select(each) },
          el("time", {}, number ? `+${duration(Math.max(trace.start[each] - trace.start[all[0]], 0))}` : moment(trace.start[each])),
          el("span", { class: "sign", "data-tone": TONES[trace.tone[each]] }, SIGNS[TONES[trace.tone[each]]] || "·"),
          el("span", { class: "text" }, trace.outcome(each)))))));
  }

  facts(event) {
    const { trace } = this;
    const side = trace.sides[trace.sideOf(event)];
    const seq = trace.seq(event);
    const lane = trace.lanes[trace.lane[event]];
    return [
      ["at", `${moment(trace.start[event])} (${clock(side.start_ns / 1e6 + trace.start[event] / 1000)})`],
      ...trace.details(event),
      ["lane", [nameOf(lane), lane.detail].filter(Boolean).join(" · ")],
      ...(seq >= 0 ? [["journal seq", String(seq)]] : []),
    ];
  }

  /** The same request in the other trace. */
  others(event) {
    const pair = this.trace.pair.get(event);
    if (pair === undefined) return null;
    const side = this.trace.sideOf(pair) ? "other" : "this";
    return el("p", { class: "note" }, button(`The same request in the ${side} trace`, () => this.act.select(pair), { class: "plain" }),
      ` ${this.trace.outcome(pair)}, ${duration(this.trace.until[pair] - this.trace.start[pair])}`);
  }
}
