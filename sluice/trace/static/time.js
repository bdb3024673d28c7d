// Times and durations of a trace, and the visible part of it.

const UNITS = [[1, "µs"], [1000, "ms"], [1e6, "s"]];

/** Formats a time since the start: +0.031 s, as the texts of findings do. */
export function moment(us) {
  return `+${(us / 1e6).toFixed(3)} s`;
}

/** Formats a duration: 340 µs, 12.3 ms, 1.234 s, 720.5 s. */
export function duration(us) {
  if (us === 0) return "0 s";
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 999_500) return `${trimmed(us / 1000, us < 100_000 ? 1 : 0)} ms`;
  return `${trimmed(us / 1e6, 3)} s`;
}

/** Formats a time on an axis whose lines are `step` apart, so that the next line has another text. */
export function tick(us, step) {
  const [size, unit] = UNITS.findLast(([each]) => us >= each) ?? UNITS[2];
  return `${trimmed(us / size, Math.max(Math.ceil(Math.log10(size / step)), 0))} ${unit}`;
}

function trimmed(number, digits) {
  return String(Number(number.toFixed(digits)));
}

/** Returns the first round step (1, 2 or 5 times a power of ten) that is at least `least`. */
export function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least);
}

const LEAST_SPAN = 20;
const MARGIN = 0.02; // of the trace, before and after it

/** The visible part of the time axis, in microseconds, and its width in pixels. */
export class View {
  constructor(end) {
    this.end = end;
    this.width = 1;
    this.fit();
  }

  fit() {
    this.show(-this.end * MARGIN, this.end * (1 + MARGIN));
  }

  get isFitted() {
    return this.span >= this.end * (1 + 2 * MARGIN) - 1;
  }

  x(at) {
    return ((at - this.start) / this.span) * this.width;
  }

  at(x) {
    return this.start + (x / this.width) * this.span;
  }

  show(from, until) {
    const most = this.end * (1 + 2 * MARGIN);
    this.span = Math.min(Math.max(until - from, LEAST_SPAN), most);
    const first = -this.end * MARGIN;
    const middle = (from + until) / 2;
    this.start = Math.min(Math.max(middle - this.span / 2, first), first + most - this.span);
  }

  pan(us) {
    this.show(this.start + us, this.start + us + this.span);
  }

  /** Zooms in if `factor` is below 1; the time `around` keeps its place. */
  zoom(factor, around) {
    const span = Math.max(this.span * factor, LEAST_SPAN);
    const start = around - ((around - this.start) / this.span) * span;
    this.show(start, start + span);
  }

  /** Moves until a part of a range is visible, if none is. */
  reveal(from, until) {
    if (from <= this.start + this.span && until >= this.start) return;
    this.show(from - this.span / 3, from + (this.span * 2) / 3);
  }

  /** Moves until a range is visible, and zooms out if it is longer than what is visible: around it, events remain. */
  focus(from, until) {
    if (from >= this.start && until <= this.start + this.span) return;
    const span = Math.max(this.span, (until - from) * 1.1);
    this.show((from + until - span) / 2, (from + until + span) / 2);
  }
}
