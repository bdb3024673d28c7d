// The tabs of the panels. On a wide page the findings have a place of their own.

import { byId } from "./dom.js";

export class Tabs {
  constructor(shown) {
    this.shown = shown;
    this.list = byId("tabs");
    this.tabs = [...this.list.querySelectorAll("[role=tab]")];
    for (const tab of this.tabs) tab.addEventListener("click", () => this.show(tab.dataset.panel));
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.current = "event";
    this.set(this.isNarrow ? "findings" : "event");
  }

  get isNarrow() {
    return this.tabs[0].offsetParent !== null; // the tab of the findings is visible
  }

  allow(name, isAllowed) {
    this.tabs.find((tab) => tab.dataset.panel === name).hidden = !isAllowed;
  }

  isShown(name) {
    return this.current === name;
  }

  /** Shows a panel, unless one of those that fit is shown. */
  open(name, fitting) {
    if (!fitting.includes(this.current)) this.set(name);
  }

  show(name) {
    this.set(name);
    this.shown();
  }

  set(name) {
    this.current = name;
    document.documentElement.dataset.panel = name;
    for (const tab of this.tabs) {
      const isCurrent = tab.dataset.panel === name;
      tab.setAttribute("aria-selected", String(isCurrent));
      tab.tabIndex = isCurrent ? 0 : -1;
    }
    for (const panel of document.querySelectorAll("[role=tabpanel]")) panel.hidden = panel.dataset.panel !== name;
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const visible = this.tabs.filter((tab) => tab.offsetParent !== null);
    const next = visible[(visible.indexOf(document.activeElement) + step + visible.length) % visible.length];
    next.focus();
    this.show(next.dataset.panel);
  }
}
