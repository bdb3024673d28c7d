// The keys of the page, as one table that the help shows, too.

import { byId, el } from "./dom.js";
import { SIGNS, TONE_NAMES } from "./palette.js";
import { TONES } from "./model.js";

// The marks of the lanes.
const GLYPHS = [
  ["▸", "connection opened"], ["◂", "connection closed"], ["⊘", "connection refused"], ["◷", "throttled"], ["✗", "fault injected"],
  ["+", "fault rule added"], ["−", "fault rule ended"], ["Q", "quota changed"], ["★", "leader changed"], ["✓", "offset committed"],
  ["§", "step of a scenario"], ["!", "records not acknowledged in time"], ["…", "events lost"], ["1+", "several findings at one time"],
];
const PAN = 0.15; // of the visible time

/** Returns rows of keys, what they do, and the action. */
function table(page) {
  const { view, selection, timeline } = page;
  const drawn = (change) => () => {
    change();
    timeline.request();
  };
  return [
    [["n"], "next finding", () => page.stepFinding(1)],
    [["p"], "previous finding", () => page.stepFinding(-1)],
    [["e"], "next error", () => page.stepError(1)],
    [["E"], "previous error", () => page.stepError(-1)],
    [["ArrowRight"], "next event of the lane", () => page.stepEvent(1)],
    [["ArrowLeft"], "previous event of the lane", () => page.stepEvent(-1)],
    [["ArrowDown"], "lane below", () => page.stepLane(1)],
    [["ArrowUp"], "lane above", () => page.stepLane(-1)],
    [["Shift+ArrowRight"], "move to later times", drawn(() => view.pan(view.span * PAN))],
    [["Shift+ArrowLeft"], "move to earlier times", drawn(() => view.pan(-view.span * PAN))],
    [["+", "="], "zoom in at the cursor", () => page.zoom(0.5)],
    [["-", "_"], "zoom out", () => page.zoom(2)],
    [["0"], "show the whole trace", () => page.fit()],
    [["z"], "zoom to the selected event", () => timeline.zoomTo(selection.event)],
    [["."], "next change of the state", () => page.state.step(1)],
    [[","], "previous change of the state", () => page.state.step(-1)],
    [["m"], "next match of the search", () => page.stepMatch(1)],
    [["M"], "previous match", () => page.stepMatch(-1)],
    [["r"], "only lanes related to the selected one, or all", () => page.toggleRelated()],
    [["c"], "collapse the group of the selected lane, or expand it", () => page.toggleGroup(page.trace.lanes[selection.lane]?.group)],
    [["/"], "search", () => byId("filter").elements.text.focus()],
    [["t"], "light or dark", () => page.switchScheme()],
    [["?"], "this help", () => byId("help").showModal()],
    [["Escape"], "clear the search and the selection", () => page.clear()],
  ];
}

export function enableKeys(page) {
  const rows = table(page);
  const actions = new Map(rows.flatMap(([keys, , act]) => keys.map((key) => [key, act])));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const isTyping = event.target.matches("input, select");
    if (isTyping && event.key !== "Escape") {
      if (event.key === "Enter") page.stepMatch(event.shiftKey ? -1 : 1);
      return;
    }
    const isMove = event.key.startsWith("Arrow");
    // Lists, tabs and panels use the arrows themselves.
    if (isMove && !byId("lanes").contains(event.target) && event.target !== document.body) return;
    const act = actions.get(isMove && event.shiftKey ? `Shift+${event.key}` : event.key);
    if (!act) return;
    event.preventDefault();
    if (isTyping) event.target.blur();
    act();
  });
  fillHelp(rows);
}

function fillHelp(rows) {
  const shown = { ArrowRight: "→", ArrowLeft: "←", ArrowDown: "↓", ArrowUp: "↑", "Shift+ArrowRight": "Shift →", "Shift+ArrowLeft": "Shift ←", Escape: "Esc", "-": "−" };
  byId("help-keys").append(...rows.map(([[key], what]) => el("div", {}, el("dt", {}, el("kbd", {}, shown[key] ?? key)), el("dd", {}, what))));
  byId("help-tones").append(...TONES.map((tone) => el("li", {},
    el("span", { class: "swatch", "data-tone": tone, "aria-hidden": "true" }, SIGNS[tone]), TONE_NAMES[tone])));
  byId("help-glyphs").append(...GLYPHS.map(([glyph, what]) => el("li", {}, el("b", { "aria-hidden": "true" }, glyph), what)));
  for (const id of ["help", "help-button"]) {
    byId(id).addEventListener("click", ({ target }) => {
      if (id === "help-button") byId("help").showModal();
      else if (target === byId("help") || target.closest("[data-close]")) byId("help").close();
    });
  }
}
