// The timeline: overview, axis, lanes, and the pointer on them. Keys are in keys.js.

import { Axis, drawOverview } from "./axis.js";
import { Children, byId, el, setAttribute, setText } from "./dom.js";
import { count } from "./format.js";
import { Drawing } from "./draw.js";
import { palette } from "./palette.js";
import { moment } from "./time.js";

const NARROW = 620; // pixels
const GUTTER = 168;
const OVERVIEW = 34;
const WHEEL = 0.0016; // zoom per pixel of the wheel
const MOVED = 4; // a pointer that moves less clicks

export class Timeline {
  /** `act` has select(event), selectLane(lane), moveCursor(at), selectFinding(number), and toggleGroup(id). */
  constructor(seen, act) {
    this.seen = seen;
    this.act = act;
    this.node = byId("timeline");
    this.scroller = byId("lanes");
    this.space = byId("lanes-space");
    this.overview = byId("overview");
    this.brush = byId("brush");
    this.axisNode = byId("axis");
    this.cursor = byId("cursor");
    this.pointer = byId("pointer");
    this.drawing = new Drawing(byId("lanes-canvas"), seen);
    this.axis = new Axis(byId("axis-canvas"), seen);
    this.labels = new Children(byId("labels"), () => this.label());
    this.isRequested = false;
    this.isOverviewOld = true;
    this.palette = null;
    this.pressed = new Map(); // pointers that are down
    new ResizeObserver(() => this.resized()).observe(this.scroller);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    this.scroller.addEventListener("scroll", () => this.request(), { passive: true });
    this.scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.scroller.addEventListener("dblclick", (event) => this.zoomTo(this.eventAt(event)));
    this.listen(this.scroller, this.drags());
    this.listen(this.axisNode, this.scrubs());
    this.listen(byId("overview-box"), this.brushes());
    this.node.addEventListener("pointerleave", () => { this.pointer.hidden = true; });
  }

  recolour() {
    this.palette = null;
    this.isOverviewOld = true;
    this.request();
  }

  /** The rows or the filter changed. */
  rearranged() {
    this.isOverviewOld = true;
    this.space.style.height = `${this.seen.rows.height}px`;
    this.request();
  }

  resized() {
    const { clientWidth: width, clientHeight: height } = this.scroller;
    Object.assign(this, { width, height });
    if (!width) return;
    const isNarrow = width < NARROW;
    this.gutter = isNarrow ? 0 : GUTTER;
    this.node.style.setProperty("--gutter", `${this.gutter}px`);
    this.node.style.setProperty("--lines-top", `${byId("overview-box").offsetTop}px`);
    this.node.classList.toggle("narrow", isNarrow);
    this.seen.view.width = Math.max(width - this.gutter, 1);
    if (this.seen.rows.isNarrow !== isNarrow) {
      this.seen.rows.isNarrow = isNarrow;
      this.seen.rows.arrange(this.seen.only);
    }
    this.rearranged();
    this.paint(); // a resized canvas is empty until it is painted
  }

  /** Paints in the next frame. */
  request() {
    if (this.isRequested) return;
    this.isRequested = true;
    requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.isRequested = false;
    const { scrollTop } = this.scroller;
    const { width, height } = this;
    if (!width || !height) return;
    const scale = Math.min(devicePixelRatio || 1, 2);
    this.palette ??= palette(scale);
    this.drawing.size(width, height, scale);
    this.drawing.draw(this.palette, scrollTop, this.gutter);
    this.axis.draw(this.palette, width - this.gutter, scale);
    if (this.isOverviewOld) {
      drawOverview(this.overview, this.seen.trace, this.seen.filter, this.palette, { width: width - this.gutter, height: OVERVIEW, scale });
      this.isOverviewOld = false;
    }
    this.place(scrollTop, height);
  }

  place(scrollTop, height) {
    const { view, rows, selection, trace } = this.seen;
    if (this.relatedTo !== selection.lane) {
      this.relatedTo = selection.lane;
      this.related = trace.lanes.length ? trace.relatedTo(selection.lane) : new Set();
    }
    this.labels.parent.style.transform = `translateY(${-scrollTop}px)`;
    this.labels.show(rows.between(scrollTop, scrollTop + height), (row) => (row.lane ? row.lane.number : row.group.id));
    const x = view.x(selection.cursor);
    this.cursor.hidden = x < 0 || x > view.width;
    this.cursor.style.transform = `translateX(${this.gutter + x}px)`;
    setText(byId("cursor-time"), moment(selection.cursor));
    byId("cursor-time").classList.toggle("left", x > view.width - 70);
    const from = Math.max(view.start / trace.end, 0);
    const until = Math.min((view.start + view.span) / trace.end, 1);
    this.brush.style.left = `${from * 100}%`;
    this.brush.style.width = `${Math.max(until - from, 0.004) * 100}%`;
    this.brush.hidden = view.isFitted;
  }

  label() {
    const sign = el("span", { class: "sign", "aria-hidden": "true" });
    const name = el("span", { class: "name" });
    const detail = el("span", { class: "detail" });
    const button = el("button", { type: "button", class: "label" }, sign, name, detail);
    let shown = null;
    button.addEventListener("click", () => {
      if (shown.lane) this.act.selectLane(shown.lane.number);
      else this.act.toggleGroup(shown.group.id);
    });
    const update = (row) => {
      if (row.lane) {
        setAttribute(button, "aria-current", row.lane.number === this.seen.selection.lane ? "true" : null);
        button.classList.toggle("related", this.related.has(row.lane.number));
      }
      if (shown === row) return;
      shown = row;
      button.classList.toggle("head", !row.lane);
      button.style.transform = `translateY(${row.y}px)`;
      button.style.height = `${this.gutter || !row.lane ? row.height - 1 : row.top}px`;
      setText(name, row.name);
      if (row.lane) {
        setText(detail, row.lane.side ? "other" : "");
        button.title = [row.name, row.lane.detail].filter(Boolean).join(" · ");
      } else {
        const isOpen = !this.seen.rows.collapsed.has(row.group.id);
        setText(detail, count(row.lanes.length));
        setText(sign, isOpen ? "▾" : "▸");
        setAttribute(button, "aria-expanded", isOpen ? "true" : "false");
      }
    };
    return { node: button, update };
  }

  /** Scrolls until the lane of an event is visible, below the middle only if it has to. */
  scrollTo(lane) {
    const row = this.seen.rows.row(lane);
    if (!row) return;
    const { scrollTop, clientHeight } = this.scroller;
    if (row.y < scrollTop) this.scroller.scrollTop = Math.max(row.y - clientHeight / 3, 0);
    else if (row.y + row.height > scrollTop + clientHeight) this.scroller.scrollTop = row.y - (clientHeight * 2) / 3;
    this.request();
  }

  zoomTo(event) {
    const { trace, view } = this.seen;
    if (event < 0) return;
    const took = Math.max(trace.until[event] - trace.start[event] + trace.throttle[event], trace.end / 5000, 100);
    view.show(trace.start[event] - took, trace.start[event] + took * 2);
    this.request();
  }

  wheel(event) {
    const { view } = this.seen;
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.ctrlKey || event.metaKey) view.zoom(Math.exp(event.deltaY * unit * WHEEL * 3), this.timeAt(event));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      view.pan(((event.deltaX || event.deltaY) * unit * view.span) / view.width);
    } else return; // scrolls the lanes
    event.preventDefault();
    this.request();
  }

  timeAt(event) {
    return this.seen.view.at(event.clientX - this.node.getBoundingClientRect().left - this.gutter);
  }

  eventAt(event) {
    const box = this.scroller.getBoundingClientRect();
    return this.drawing.hit(event.clientX - box.left, event.clientY - box.top);
  }

  /** Follows pointers on a node: `down`, `move` while one is down, `up(hasMoved)`, and `over` without one. */
  listen(node, on) {
    let start = null;
    node.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.target.closest("button")) return;
      node.setPointerCapture(event.pointerId);
      this.pressed.set(event.pointerId, event);
      start = event;
      on.down?.(event);
    });
    node.addEventListener("pointermove", (event) => {
      if (this.pressed.has(event.pointerId)) {
        const before = this.pressed.get(event.pointerId);
        this.pressed.set(event.pointerId, event);
        on.move(event, before);
      }
      this.hover(event);
    });
    const ended = (event) => {
      if (!this.pressed.delete(event.pointerId) || this.pressed.size || event.type === "pointercancel") return;
      const hasMoved = Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > MOVED;
      on.up?.(event, hasMoved);
    };
    node.addEventListener("pointerup", ended);
    node.addEventListener("pointercancel", ended);
  }

  hover(event) {
    if (event.pointerType === "touch") return;
    const x = event.clientX - this.node.getBoundingClientRect().left;
    this.pointer.hidden = x < this.gutter;
    this.pointer.style.transform = `translateX(${x}px)`;
    setText(byId("pointer-time"), moment(this.timeAt(event)));
    const found = this.scroller.contains(event.target) ? this.eventAt(event) : -1;
    this.scroller.classList.toggle("over", found >= 0);
    this.act.preview(found, event);
  }

  /** On the lanes: a drag pans, two fingers zoom, a click selects. */
  drags() {
    const { view } = this.seen;
    return {
      move: (event, before) => {
        const others = [...this.pressed.values()].filter((each) => each.pointerId !== event.pointerId);
        const perPixel = view.span / view.width;
        if (others.length) {
          const [other] = others;
          const [distance, was] = [event, before].map((each) => Math.max(Math.abs(each.clientX - other.clientX), 20));
          view.zoom(was / distance, this.timeAt({ clientX: (event.clientX + other.clientX) / 2 }));
        } else {
          view.pan((before.clientX - event.clientX) * perPixel);
          if (event.pointerType === "mouse") this.scroller.scrollTop += before.clientY - event.clientY;
        }
        this.request();
      },
      up: (event, hasMoved) => {
        if (hasMoved) return;
        this.scroller.focus({ preventScroll: true });
        const found = this.eventAt(event);
        if (found >= 0) {
          this.act.select(found);
          return;
        }
        const row = this.seen.rows.at(event.clientY - this.scroller.getBoundingClientRect().top + this.scroller.scrollTop);
        this.act.moveCursor(this.timeAt(event), row?.lane?.number);
      },
    };
  }

  /** On the axis: the cursor follows the pointer, and a click on a pin selects its finding. */
  scrubs() {
    return {
      down: (event) => {
        const box = this.axisNode.getBoundingClientRect();
        const pin = this.axis.pinAt(event.clientX - box.left, event.clientY - box.top);
        if (pin >= 0) this.act.selectFinding(pin);
        else this.act.moveCursor(this.timeAt(event));
      },
      move: (event) => this.act.moveCursor(this.timeAt(event)),
    };
  }

  /** On the overview: a drag selects the visible part, or moves it; a click centres it. */
  brushes() {
    const { view, trace } = this.seen;
    const box = byId("overview-box");
    const at = (event) => {
      const { left, width } = box.getBoundingClientRect();
      return ((event.clientX - left) / width) * trace.end;
    };
    let from = 0;
    let isMoving = false;
    return {
      down: (event) => {
        from = at(event);
        isMoving = !view.isFitted && from > view.start && from < view.start + view.span;
      },
      move: (event, before) => {
        if (isMoving) view.pan(at(event) - at(before));
        else view.show(Math.min(from, at(event)), Math.max(from, at(event)));
        this.request();
      },
      up: (event, hasMoved) => {
        if (!hasMoved && !view.isFitted) view.pan(at(event) - view.start - view.span / 2);
        this.request();
      },
    };
  }
}
