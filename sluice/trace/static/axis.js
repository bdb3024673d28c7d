// The two strips above the lanes: an overview of the whole trace, and the axis with phases, log lines and findings.

import { TONES } from "./model.js";
import { roundStep, tick } from "./time.js";

const TICK_WIDTH = 110;
const PHASE = 17; // heights of the parts of the axis
const PINS = 18;
const PIN_WIDTH = 16;
const LOG = 8;
const LEVELS = [[/^(critical|error|fatal)/i, "bad"], [/^warn/i, "wait-fill"], [/./, "line-strong"]];
const LETTER = 6.1;
const FONT = "11px ui-sans-serif, system-ui, -apple-system, \"Segoe UI\", Roboto, \"Noto Sans\", sans-serif";

const AXIS_HEIGHT = PHASE + LOG + PINS + 18;

function begin(canvas, width, height, scale, palette) {
  if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
  if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d", { alpha: false });
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = palette.panel;
  context.fillRect(0, 0, width, height);
  return context;
}

/** The number of events in each pixel of the whole trace, errors at the bottom. */
export function drawOverview(canvas, trace, filter, palette, size) {
  const { width, height, scale } = size;
  const context = begin(canvas, width, height, scale, palette);
  const columns = Math.max(Math.floor(width / 2), 1);
  const counts = TONES.map(() => new Float32Array(columns));
  for (let event = 0; event < trace.count; event++) {
    if (!filter.matchesEvent(event) || trace.lanes[trace.lane[event]].group === "test") continue;
    counts[trace.tone[event]][Math.min(Math.floor((trace.start[event] / trace.end) * columns), columns - 1)] += 1;
  }
  const most = Math.max(1, ...counts[0].map((_, at) => counts.reduce((all, tone) => all + tone[at], 0)));
  for (let at = 0; at < columns; at++) {
    let y = height;
    for (let tone = TONES.length - 1; tone >= 0; tone--) {
      if (!counts[tone][at]) continue;
      const high = Math.max((Math.sqrt(counts[tone][at] / most)) * (height - 4) * 0.7, 2);
      context.fillStyle = palette.tones[tone].edge;
      context.globalAlpha = tone > 2 ? 1 : 0.5;
      context.fillRect(at * 2, y - high, 1.5, high);
      y -= high;
    }
  }
  context.globalAlpha = 1;
  const { failure } = trace.data;
  if (!failure || failure.at < 0) return;
  context.fillStyle = palette.bad;
  context.fillRect((failure.at / trace.end) * width - 1, 0, 2, height);
}

export class Axis {
  constructor(canvas, seen) {
    this.canvas = canvas;
    this.seen = seen;
    this.pins = [];
    this.logs = seen.trace.data.logs.map(([at, level]) => [at, LEVELS.find(([test]) => test.test(level))?.[1] ?? "line-strong"]);
  }

  draw(palette, width, scale) {
    const { view } = this.seen;
    this.context = begin(this.canvas, width, AXIS_HEIGHT, scale, palette);
    this.palette = palette;
    this.context.font = FONT;
    this.context.textBaseline = "middle";
    this.width = width;
    this.drawPhases();
    this.drawLogs();
    const step = roundStep((view.span / view.width) * TICK_WIDTH);
    for (let at = Math.max(Math.ceil(view.start / step) * step, 0); at < view.start + view.span; at += step) this.drawTick(at, step);
    this.drawFailure();
    this.drawPins();
  }

  drawTick(at, step) {
    const { context, palette, seen: { view } } = this;
    const x = view.x(at);
    context.fillStyle = palette["line-strong"];
    context.fillRect(Math.round(x), AXIS_HEIGHT - 6, 1, 6);
    context.fillStyle = palette["ink-2"];
    context.fillText(tick(Math.max(at, 0), step), x + 4, AXIS_HEIGHT - 8);
  }

  drawPhases() {
    const { context, palette, seen: { trace, view } } = this;
    for (const phase of trace.data.phases) {
      const from = Math.max(view.x(phase.start), 0);
      const width = Math.min(view.x(phase.end), this.width) - from;
      if (width <= 0) continue;
      const isFailed = phase.result === "failed";
      context.fillStyle = isFailed ? palette["bad-soft"] : palette.sunk;
      context.fillRect(from, 0, Math.max(width - 1, 1), PHASE - 2);
      const text = phase.result && phase.result !== "passed" ? `${phase.name}: ${phase.result}` : phase.name;
      if (text.length * LETTER > width - 8) continue;
      context.fillStyle = isFailed ? palette.bad : palette["ink-2"];
      context.fillText(text, from + 5, PHASE / 2);
    }
  }

  drawLogs() {
    const { context, palette, seen: { view } } = this;
    for (const [at, colour] of this.logs) {
      const x = view.x(at);
      if (x < 0 || x > this.width) continue;
      context.fillStyle = palette[colour];
      context.fillRect(x - 0.75, PHASE, 1.5, LOG - 2);
    }
  }

  drawFailure() {
    const { context, palette, seen: { trace, view } } = this;
    const { failure } = trace.data;
    if (!failure || failure.at < 0) return;
    const x = view.x(failure.at);
    const text = failure.line >= 0 ? `✗ failed at line ${failure.line}` : "✗ failed";
    const width = text.length * LETTER + 8;
    const left = x + width > this.width ? x - width : x;
    context.fillStyle = palette.bad;
    context.fillRect(x - 1, 0, 2, AXIS_HEIGHT);
    context.fillRect(left, 0, width, PHASE - 2);
    context.fillStyle = palette.panel;
    context.fillText(text, left + 5, PHASE / 2);
  }

  /** A numbered pin for each finding; those that would overlap share one. */
  drawPins() {
    const { context, palette, seen: { trace, view, selection } } = this;
    const y = PHASE + LOG;
    this.pins = [];
    const order = trace.findings.map((_, number) => number).sort((one, other) => trace.findings[one].at - trace.findings[other].at);
    for (const number of order) {
      const x = view.x(trace.findings[number].at);
      if (x < -PIN_WIDTH || x > this.width + PIN_WIDTH) continue;
      const last = this.pins.at(-1);
      if (last && x - last.x < PIN_WIDTH) last.numbers.push(number);
      else this.pins.push({ x, numbers: [number] });
    }
    for (const { x, numbers } of this.pins) {
      const worst = numbers.map((number) => trace.findings[number].severity);
      const colour = worst.includes("error") ? palette.bad : worst.includes("warning") ? palette.tones[3].edge : palette.accent;
      const isChosen = numbers.includes(selection.finding);
      const text = numbers.length === 1 ? String(numbers[0] + 1) : `${Math.min(...numbers) + 1}+`;
      const half = Math.max(text.length * LETTER + 8, PIN_WIDTH) / 2;
      context.beginPath();
      context.roundRect(x - half, y, half * 2, PINS - 4, 4);
      context.fillStyle = isChosen ? colour : palette.panel;
      context.fill();
      context.strokeStyle = colour;
      context.lineWidth = 1.5;
      context.stroke();
      context.fillStyle = isChosen ? palette.panel : colour;
      context.textAlign = "center";
      context.fillText(text, x, y + PINS / 2 - 1.5);
      context.textAlign = "start";
    }
  }

  /** Returns the finding whose pin is at a point: of several, the one after the selected. */
  pinAt(x, y) {
    if (y < PHASE || y > PHASE + LOG + PINS) return -1;
    const pin = this.pins.find((each) => Math.abs(each.x - x) <= PIN_WIDTH / 2 + 3);
    if (!pin) return -1;
    return pin.numbers[(pin.numbers.indexOf(this.seen.selection.finding) + 1) % pin.numbers.length];
  }
}
