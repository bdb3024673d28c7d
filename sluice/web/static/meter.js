// A bar for the rate against its quota, and a line for two minutes of traffic.

import { el, setAttribute, setText, svg } from "./dom.js";
import { editable } from "./editable.js";
import { measured } from "./format.js";

const MARK = 0.8; // position of the quota on the bar
const WIDTH = 150;
const HEIGHT = 30;
const BASE = 25; // the throttle marks are below it

export class Meter {
  /** `save(text, meter)` sets the quota, or throws an error. */
  constructor(kind, label, save) {
    this.kind = kind;
    this.rate = el("b");
    this.bound = editable({
      label: `${label} quota`,
      shown: () => `of ${measured(kind, this.seen.bound)}`,
      unset: "set a quota",
      value: () => this.seen?.bound ?? null,
      save: (text) => save(text, this.seen),
    });
    this.within = el("i");
    this.over = el("i", { class: "over" });
    this.bar = el("span", { class: "bar", "aria-hidden": "true" }, this.over, this.within, el("u"));
    this.node = el("div", { class: "meter" }, el("span", { class: "words" }, this.rate, this.bound.node), this.bar);
  }

  /** `seen` has no rate if nothing was recorded yet, and is null if no quota applies either. */
  update(seen) {
    this.seen = seen;
    const isUsed = seen?.rate !== undefined;
    setText(this.rate, isUsed ? measured(this.kind, seen.rate) : "—");
    this.bound.update();
    this.bar.hidden = !isUsed || seen.bound === null;
    if (this.bar.hidden) return;
    const share = seen.bound > 0 ? seen.rate / seen.bound : 1;
    this.within.style.width = `${Math.min(share, 1) * MARK * 100}%`;
    this.over.style.width = `${Math.min(share * MARK, 1) * 100}%`;
    this.over.hidden = share <= 1;
  }
}

/** The charges in each half second, and the times when the client was throttled. */
export class Spark {
  constructor() {
    this.area = svg("path", { class: "area" });
    this.line = svg("path");
    this.throttled = svg("path", { class: "throttled-marks" });
    this.node = svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
      this.area, this.line, this.throttled);
    this.points = [];
  }

  add(points) {
    this.points.push(...points);
  }

  draw(look, kept) {
    const first = look - kept;
    while (this.points.length && this.points[0][0] <= first) this.points.shift();
    const heights = new Array(kept + 2).fill(0); // a snapshot without a point has no charges
    const most = Math.max(1, ...this.points.map((point) => point[1]));
    const x = (at) => ((at / kept) * WIDTH).toFixed(1);
    let throttled = "";
    for (const [number, perSecond, isThrottled] of this.points) {
      heights[number - first] = perSecond / most;
      if (isThrottled) throttled += `M${x(number - first - 1)} ${HEIGHT - 2}H${x(number - first)}`;
    }
    let line = `M0 ${BASE}`;
    for (let at = 1; at <= kept; at++) {
      if (heights[at - 1] || heights[at] || heights[at + 1]) line += `L${x(at)} ${(BASE - heights[at] * (BASE - 2)).toFixed(1)}`;
    }
    const seconds = this.points.filter((point) => point[2]).length / 2;
    line += `H${WIDTH}`;
    setAttribute(this.line, "d", line);
    setAttribute(this.area, "d", `${line}V${BASE}H0Z`);
    setAttribute(this.throttled, "d", throttled || "M0 0");
    setAttribute(this.node, "aria-label", `at most ${measured("Produce", most === 1 ? 0 : most)}; throttled for ${Math.round(seconds)} s`);
  }
}
