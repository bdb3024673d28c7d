// Draws the lanes of the visible times on a canvas.

import { TONES } from "./model.js";
import { BAR_HEIGHT, barTop } from "./rows.js";
import { roundStep } from "./time.js";

const TINY = 4; // a narrower bar is a plain line
const LEAST_TEXT = 34;
const MARK_WIDTH = 11;
const TICK_WIDTH = 110; // at least, between two lines
const ERROR = TONES.indexOf("error");
const LOST = TONES.indexOf("lost");
const IMPORTANT = TONES.indexOf("throttled"); // and all tones after it

export class Drawing {
  /** `seen` has the trace, view, rows, selection and filter that the page shows. */
  constructor(canvas, seen) {
    this.canvas = canvas;
    this.seen = seen;
    this.context = canvas.getContext("2d", { alpha: false });
    this.widths = new Map(); // of texts, which are measured once
  }

  size(width, height, scale) {
    this.width = width;
    this.height = height;
    this.scale = scale;
    const [across, down] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width === across && this.canvas.height === down) return;
    this.canvas.width = across;
    this.canvas.height = down;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  /** Draws the rows from `top` on; `left` is the width of the labels. */
  draw(palette, top, left) {
    const { context, seen } = this;
    this.palette = palette;
    this.top = top;
    this.left = left;
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    context.fillStyle = palette.panel;
    context.fillRect(0, 0, this.width, this.height);
    this.rows = seen.rows.between(top, top + this.height);
    this.drawGround();
    context.save();
    context.beginPath();
    context.rect(left, 0, this.width - left, this.height);
    context.clip();
    this.drawTimes();
    for (const row of this.rows) this.drawRow(row);
    this.drawLinks();
    this.drawChosen();
    this.drawFailure();
    context.restore();
  }

  x(at) {
    return this.left + this.seen.view.x(at);
  }

  drawGround() {
    const { context, palette, seen } = this;
    for (const row of this.rows) {
      const y = row.y - this.top;
      if (row.lanes) context.fillStyle = palette.sunk;
      else if (row.lane.number === seen.selection.lane) context.fillStyle = palette["accent-soft"];
      else context.fillStyle = row.lane.side ? palette.sunk : palette.panel;
      context.fillRect(0, y, this.width, row.height);
      context.fillStyle = palette.line;
      context.fillRect(0, y + row.height - 1, this.width, 1);
    }
  }

  drawTimes() {
    const { context, palette, seen: { view, trace } } = this;
    const step = roundStep((view.span / view.width) * TICK_WIDTH);
    context.fillStyle = palette.line;
    for (let at = Math.ceil(view.start / step) * step; at < view.start + view.span; at += step) {
      context.fillRect(Math.round(this.x(at)), 0, 1, this.height);
    }
    context.fillStyle = palette["line-strong"];
    for (const phase of trace.data.phases) context.fillRect(Math.round(this.x(phase.start)), 0, 1, this.height);
  }

  drawRow(row) {
    const y = row.y - this.top;
    if (row.lanes) {
      if (this.seen.rows.collapsed.has(row.group.id)) this.drawCollapsed(row, y);
      return;
    }
    const events = this.visible(row.lane.events);
    for (const isImportant of [false, true]) this.drawBars(row, y, events, isImportant);
    for (const isImportant of [false, true]) this.drawMarks(row, y, events, isImportant);
    this.context.globalAlpha = 1;
  }

  visible(events) {
    const { trace: { start, until, throttle }, view } = this.seen;
    const last = view.start + view.span;
    const found = [];
    for (const event of events) {
      if (start[event] > last) break;
      if (until[event] + throttle[event] >= view.start) found.push(event);
    }
    return found;
  }

  /** Draws usual bars, and in a second call the others, which are thus never hidden. */
  drawBars(row, y, events, isImportant) {
    const { trace, filter, view } = this.seen;
    const perUs = view.width / view.span;
    const drawn = []; // the last pixel in each row of bars
    for (const event of events) {
      if ((trace.tone[event] >= IMPORTANT) !== isImportant || trace.isMark(event)) continue;
      const index = trace.row[event];
      const from = this.left + (trace.start[event] - view.start) * perUs;
      const width = Math.max((trace.until[event] - trace.start[event]) * perUs, isImportant ? 3 : 1.5);
      if (from + width <= (drawn[index] ?? -Infinity) + 0.5) continue; // hidden by its neighbour
      drawn[index] = from + width;
      this.context.globalAlpha = filter.matchesEvent(event) ? 1 : 0.18;
      this.drawBar(event, from, y + barTop(row, index), width);
    }
  }

  drawBar(event, from, y, wide) {
    const { context, palette, seen: { trace, view } } = this;
    const tone = palette.tones[trace.tone[event]];
    const throttle = trace.throttle[event];
    if (throttle) {
      context.fillStyle = palette.throttle;
      context.fillRect(from + wide, y + 3, Math.max((throttle / view.span) * view.width, 2), BAR_HEIGHT - 6);
    }
    if (wide < TINY) {
      context.fillStyle = tone.edge;
      context.fillRect(from, y, wide, BAR_HEIGHT);
      return;
    }
    const x = Math.max(from, this.left - 3); // what is left of the lane has no text
    const width = Math.min(from + wide, this.width + 3) - x;
    context.fillStyle = tone.fill;
    context.fillRect(x, y, width, BAR_HEIGHT);
    if (tone.pattern) {
      context.fillStyle = tone.pattern;
      context.fillRect(x, y, width, BAR_HEIGHT);
    }
    this.drawParked(event, from, y, wide);
    if (trace.tone[event] === LOST) this.drawOutline(x, y, width, tone.edge, [3, 2]);
    context.fillStyle = tone.edge;
    context.fillRect(from, y, 2, BAR_HEIGHT);
    if (width > LEAST_TEXT) this.drawText(`${tone.sign ? `${tone.sign} ` : ""}${trace.text(event)}`, x + 5, y, width - 8);
    else if (tone.sign && width > 12) this.drawText(tone.sign, x + 4, y, 20);
  }

  /** The part of a bar in which the request was parked is lower and has a dotted base. */
  drawParked(event, from, y, wide) {
    const { context, palette, seen: { trace } } = this;
    const parked = trace.parked[event];
    const took = trace.until[event] - trace.start[event];
    if (!parked || !took) return;
    const width = (wide * Math.min(parked, took)) / took;
    if (width < 3) return;
    context.fillStyle = palette.panel;
    context.fillRect(from + wide - width - 1, y, width, 2);
    context.fillRect(from + wide - width - 1, y + BAR_HEIGHT - 2, width, 2);
  }

  drawText(text, x, y, room) {
    const { context, palette } = this;
    context.fillStyle = palette.ink;
    context.font = FONT;
    context.textBaseline = "middle";
    context.fillText(this.cut(text, room), x, y + BAR_HEIGHT / 2 + 0.5);
  }

  /** Shortens a text to the room for it. */
  cut(text, room) {
    let width = this.widths.get(text);
    if (width === undefined) {
      width = this.context.measureText(text).width;
      this.widths.set(text, width);
    }
    if (width <= room) return text;
    return `${text.slice(0, Math.max(Math.floor((room / width) * text.length) - 1, 1))}…`;
  }

  drawOutline(x, y, width, colour, dash) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.setLineDash(dash);
    context.strokeRect(x + 0.5, y + 0.5, width - 1, BAR_HEIGHT - 1);
    context.setLineDash([]);
  }

  drawMarks(row, y, events, isImportant) {
    const { trace, filter } = this.seen;
    let last = -Infinity;
    for (const event of events) {
      if ((trace.tone[event] >= IMPORTANT) !== isImportant || !trace.isMark(event)) continue;
      const x = this.x(trace.start[event]);
      if (x - last < MARK_WIDTH / 2) continue;
      last = x;
      this.context.globalAlpha = filter.matchesEvent(event) ? 1 : 0.18;
      this.drawMark(event, x, y + barTop(row, trace.row[event]));
    }
  }

  drawMark(mark, x, y) {
    const { context, palette, seen: { trace } } = this;
    const tone = palette.tones[trace.tone[mark]];
    context.fillStyle = palette.panel;
    context.beginPath();
    context.roundRect(x - MARK_WIDTH / 2 - 0.5, y + 1, MARK_WIDTH + 1, BAR_HEIGHT - 2, 3);
    context.fill();
    context.strokeStyle = tone.edge;
    context.lineWidth = 1;
    context.stroke();
    context.fillStyle = tone.edge;
    context.font = SIGN_FONT;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(trace.glyph(mark), x, y + BAR_HEIGHT / 2 + 0.5);
    context.textAlign = "start";
  }

  /** The head of a collapsed group has a line for each event of its lanes. */
  drawCollapsed(row, y) {
    const { context, palette, seen: { trace, filter } } = this;
    for (const isImportant of [false, true]) {
      for (const lane of row.lanes) {
        let last = -Infinity;
        for (const event of this.visible(lane.events)) {
          if ((trace.tone[event] >= IMPORTANT) !== isImportant || !filter.matchesEvent(event)) continue;
          const from = this.x(trace.start[event]);
          const width = Math.max(this.x(trace.until[event]) - from, isImportant ? 2 : 1);
          if (from + width <= last + 0.5) continue;
          last = from + width;
          context.globalAlpha = isImportant ? 1 : 0.35;
          context.fillStyle = palette.tones[trace.tone[event]].edge;
          context.fillRect(from, y + 7, width, row.height - 15);
        }
      }
    }
    context.globalAlpha = 1;
  }

  /** Joins the attempts of a request: faintly, and clearly those of the selected one. */
  drawLinks() {
    const { seen: { trace, selection } } = this;
    const chosen = new Set(selection.event < 0 ? [] : trace.attempts(selection.event));
    for (const [one, other] of trace.next) this.drawLink(one, other, chosen.has(one));
    const pair = trace.pair.get(selection.event);
    if (pair !== undefined) this.drawLink(selection.event, pair, true);
  }

  drawLink(one, other, isChosen) {
    const { context, palette, seen: { trace } } = this;
    const [from, to] = [this.x(trace.until[one]), this.x(trace.start[other])];
    if (Math.max(from, to) < this.left || Math.min(from, to) > this.width || (!isChosen && Math.abs(to - from) < 3)) return;
    const [y, below] = [this.middle(one), this.middle(other)];
    if (y === null || below === null) return;
    context.strokeStyle = isChosen ? palette.ink : palette.tones[ERROR].edge;
    context.globalAlpha = isChosen ? 0.9 : 0.4;
    context.lineWidth = isChosen ? 1.5 : 1;
    context.beginPath();
    context.moveTo(from, y);
    const bend = Math.min(Math.max((to - from) / 2, 8), 60);
    context.bezierCurveTo(from + bend, y, to - bend, below, to, below);
    context.stroke();
    context.globalAlpha = 1;
  }

  middle(event) {
    const { trace, rows } = this.seen;
    const row = rows.row(trace.lane[event]);
    if (!row || row.y > this.top + this.height + 400 || row.y < this.top - 400) return null;
    return row.y - this.top + (row.lanes ? row.height / 2 : barTop(row, trace.row[event]) + BAR_HEIGHT / 2);
  }

  drawChosen() {
    const { trace, selection } = this.seen;
    for (const event of selection.highlighted) this.drawFrame(event, this.palette["accent-fill"], 2);
    if (selection.event >= 0) {
      for (const event of trace.attempts(selection.event)) this.drawFrame(event, this.palette["ink-2"], 1);
      this.drawFrame(selection.event, this.palette.ink, 2);
    }
  }

  drawFrame(event, colour, wide) {
    const { context, seen: { trace } } = this;
    const middle = this.middle(event);
    if (middle === null) return;
    const isMark = trace.isMark(event);
    const from = this.x(trace.start[event]) - (isMark ? MARK_WIDTH / 2 + 1 : 0);
    const width = isMark ? MARK_WIDTH + 2 : Math.max(this.x(trace.until[event]) - from, 3);
    const [x, end] = [Math.max(from, this.left - 9), Math.min(from + width, this.width + 9)];
    if (end < x) return;
    context.strokeStyle = colour;
    context.lineWidth = wide;
    context.strokeRect(x - 1.5, middle - BAR_HEIGHT / 2 - 1.5, end - x + 3, BAR_HEIGHT + 3);
  }

  drawFailure() {
    const { context, palette, seen: { trace } } = this;
    const { failure } = trace.data;
    if (!failure || failure.at < 0) return;
    context.fillStyle = palette.bad;
    context.fillRect(Math.round(this.x(failure.at)) - 1, 0, 2, this.height);
  }

  /** Returns the event at a point of the canvas; of several, the one that is drawn on top. */
  hit(x, y) {
    const { trace, rows } = this.seen;
    const row = rows.at(y + this.top);
    if (!row?.lane) return -1;
    let best = -1;
    for (const event of this.visible(row.lane.events)) {
      const isMark = trace.isMark(event);
      const from = this.x(trace.start[event]) - (isMark ? MARK_WIDTH / 2 : 2);
      const until = isMark ? from + MARK_WIDTH : Math.max(this.x(trace.until[event]), from + 3) + 2;
      const highest = row.y - this.top + barTop(row, trace.row[event]);
      if (x < from || x > until || y < highest - 1 || y > highest + BAR_HEIGHT + 1) continue;
      if (best < 0 || isMark || trace.tone[event] >= trace.tone[best]) best = event;
    }
    return best;
  }
}

const FONT = "11px ui-sans-serif, system-ui, -apple-system, \"Segoe UI\", Roboto, \"Noto Sans\", sans-serif";
const SIGN_FONT = `600 ${FONT}`;
