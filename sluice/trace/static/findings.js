// The findings, the most important first, and the differences of two traces.

import { byId, button, el, setAttribute, setText } from "./dom.js";
import { clock, counted } from "./format.js";
import { moment } from "./time.js";

const SIGNS = { error: "!", warning: "▲", info: "i" };

export class Findings {
  constructor({ trace, selection }, select, moveCursor) {
    this.selection = selection;
    if (trace.data.failure) showFailure(trace.data.failure, moveCursor);
    this.items = trace.findings.map((finding, number) => item(finding, number, () => select(number)));
    byId("findings-list").append(...this.items);
    setText(byId("findings-count"), String(trace.findings.length));
    byId("findings-none").hidden = this.items.length > 0;
  }

  show() {
    this.items.forEach((node, number) => {
      const isChosen = number === this.selection.finding;
      if (isChosen && node.firstChild.getAttribute("aria-current") === null) node.scrollIntoView({ block: "nearest" });
      setAttribute(node.firstChild, "aria-current", isChosen ? "true" : null);
    });
  }
}

function showFailure({ text, file, line, at }, moveCursor) {
  const place = file && line >= 0 ? `${file}:${line}` : file;
  byId("failure").append(el("p", { class: "words" }, text), el("p", { class: "sub" }, place,
    at >= 0 ? button(`at ${moment(at)}`, () => moveCursor(at), { class: "plain" }) : null));
  byId("failure").hidden = false;
}

function item(finding, number, select) {
  const [first, ...rest] = finding.text.split("\n");
  const sign = el("span", { class: "sign" }, SIGNS[finding.severity], el("span", { class: "unseen" }, finding.severity));
  return el("li", { "data-severity": finding.severity },
    el("button", { type: "button", class: "finding", click: select }, sign,
      el("span", { class: "title" }, el("span", { class: "number", "aria-hidden": "true" }, String(number + 1)), finding.title),
      el("time", {}, moment(finding.at)),
      el("span", { class: "text" }, first, ...rest.flatMap((line) => [el("br"), line]))));
}

/** The panel of differences: rows of time and text, the first one first. */
export class Differences {
  constructor({ trace, selection }, select) {
    this.trace = trace;
    this.selection = selection;
    this.node = byId("differences-list");
    const { differences } = trace.data.compare;
    const [here, there] = trace.sides;
    const named = (side) => [side.title === here.title ? "" : `“${side.title}”`, side.result, clock(side.start_ns / 1e6)].filter(Boolean).join(", ");
    setText(byId("differences-what"), `${counted(differences.length, "difference")} of this trace (${named(here)}) from the other one (${named(there)}).`);
    this.events = differences.map((each) => (each.bar >= 0 ? each.bar : each.other_bar + trace.firstBars[1]));
    this.node.append(...differences.map((each, number) => el("li", {},
      el("button", { type: "button", class: "row", click: () => select(this.events[number]) },
        el("time", {}, moment(each.at)), el("span", { class: "sign" }, each.bar < 0 ? "+" : each.other_bar < 0 ? "−" : "≠"),
        el("span", { class: "text" }, each.text)))));
  }

  show() {
    [...this.node.children].forEach((node, number) => {
      const isChosen = this.events[number] === this.selection.event;
      setAttribute(node.firstChild, "aria-current", isChosen ? "true" : null);
    });
  }
}
