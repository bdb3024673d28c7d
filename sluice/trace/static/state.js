// The panel of the state at the cursor: the last value of each key, and since when.

import { Children, byId, button, el, setText } from "./dom.js";
import { moment } from "./time.js";

const NAMES = {
  brokers: "Brokers", leaders: "Leaders and in-sync replicas", groups: "Groups", members: "Members", committed: "Committed offsets",
  offsets: "High watermarks and last stable offsets", transactions: "Transactions", quotas: "Quotas", rules: "Fault rules",
};

/** Returns section -> key -> [since, value] at a time. */
function stateAt(changes, at) {
  const state = new Map(Object.keys(NAMES).map((section) => [section, new Map()]));
  for (const [since, section, key, value] of changes) {
    if (since > at) break;
    if (!state.has(section)) state.set(section, new Map());
    if (value === null) state.get(section).delete(key);
    else state.get(section).set(key, [since, value]);
  }
  return state;
}

export class State {
  constructor({ trace, selection }, moveCursor) {
    this.trace = trace;
    this.selection = selection;
    this.moveCursor = moveCursor;
    this.sections = new Children(byId("state-body"), () => this.section());
    this.times = [...new Set(trace.sides.flatMap((side) => side.state.map(([at]) => at)))].sort((one, other) => one - other);
    byId("state-before").addEventListener("click", () => this.step(-1));
    byId("state-after").addEventListener("click", () => this.step(1));
  }

  /** Moves the cursor to the change before, or after it. */
  step(by) {
    const { cursor } = this.selection;
    const next = by > 0 ? this.times.find((at) => at > cursor) : this.times.findLast((at) => at < cursor);
    if (next !== undefined) this.moveCursor(next);
  }

  show() {
    const { cursor } = this.selection;
    const states = this.trace.sides.map((side) => stateAt(side.state, cursor));
    this.last = this.times.findLast((at) => at <= cursor); // the latest change, which is marked
    setText(byId("state-at"), `at ${moment(cursor)}`);
    const sections = [...states[0].keys()].map((id) => ({ id, rows: rowsOf(states.map((state) => state.get(id) ?? new Map())) }));
    this.sections.show(sections.filter(({ rows }) => rows.length), ({ id }) => id);
    byId("state-none").hidden = sections.some(({ rows }) => rows.length);
  }

  section() {
    const head = el("summary");
    const list = el("dl", { class: "facts state" });
    const rows = new Children(list, () => this.row());
    return {
      node: el("details", { open: true }, head, list),
      update: ({ id, rows: shown }) => {
        setText(head, `${NAMES[id] ?? id} (${shown.length})`);
        rows.show(shown, ({ key }) => key);
      },
    };
  }

  row() {
    const [name, here, there] = [el("dt"), el("span"), el("span", { class: "other" })];
    let at = 0;
    const since = button("", () => this.moveCursor(at), { class: "plain since", title: "Since then; moves the cursor to it" });
    const value = el("dd", {}, here, there);
    return {
      node: el("div", {}, name, value, since),
      update: ({ key, values: [first, second] }) => {
        at = (first ?? second)[0];
        setText(name, key);
        setText(here, first?.[1] ?? "—");
        const differs = this.trace.sides.length > 1 && first?.[1] !== second?.[1];
        setText(there, differs ? `other: ${second?.[1] ?? "—"}` : "");
        setText(since, at > 0 ? moment(at) : "");
        value.parentNode.classList.toggle("new", at === this.last && at > 0);
      },
    };
  }
}

function rowsOf(states) {
  const keys = new Set(states.flatMap((state) => [...state.keys()]));
  return [...keys].sort((one, other) => one.localeCompare(other, "en", { numeric: true }))
    .map((key) => ({ key, values: states.map((state) => state.get(key)) }));
}
