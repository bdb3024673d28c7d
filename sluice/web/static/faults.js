// The fault rules: conditions, hits, and switches.

import { send } from "./api.js";
import { Children, button, byId, el, setAttribute, setText } from "./dom.js";
import { FaultForm } from "./fault_form.js";
import { count, countOf, counted, named } from "./format.js";
import { attempt } from "./problem.js";

const STATES = { pending: "not begun", "in force": "active", disabled: "disabled by an error", off: "switched off" };

export class Faults {
  constructor() {
    this.off = new Map(); // by id: rules that this page has switched off
    this.shown = [];
    this.total = 0;
    this.problem = byId("fault-problem");
    this.rows = new Children(byId("fault-rows"), () => new Row(this));
    this.form = new FaultForm(byId("fault-form"));
    byId("fault-new").addEventListener("toggle", () => this.form.open());
    byId("observe").addEventListener("click", () => this.stopAll());
  }

  show({ rows, total }) {
    this.shown = rows;
    this.total = total;
    for (const rule of rows) this.off.delete(rule.id);
    for (const [id, rule] of this.off) {
      if (rule.state !== "off") this.off.delete(id); // it has been removed
    }
    this.draw();
  }

  draw() {
    const rows = [...this.shown.filter((rule) => !this.off.has(rule.id)), ...this.off.values()];
    byId("fault-none").hidden = rows.length > 0;
    setText(byId("fault-none"), "No fault rule is set. The broker injects no faults.");
    setText(byId("fault-count"), this.total ? countOf(this.shown.length, this.total) : "");
    this.rows.show(rows, (rule) => rule.id);
  }

  turn(rule) {
    const isOff = rule.state === "off";
    return this.attempt(async () => {
      if (isOff) await send("POST", "/api/v1/faults", { ...rule.rule, id: rule.id });
      else await send("DELETE", `/api/v1/faults/${encodeURIComponent(rule.id)}`);
      this.off.set(rule.id, { ...rule, state: isOff ? "in force" : "off" });
    });
  }

  remove(rule) {
    return this.attempt(async () => {
      if (rule.state !== "off") await send("DELETE", `/api/v1/faults/${encodeURIComponent(rule.id)}`);
      this.off.delete(rule.id);
    });
  }

  // Removes the quotas, too, and stops the scenario: the broker then only observes.
  stopAll() {
    return this.attempt(async () => {
      await send("POST", "/api/v1/observe", {});
      this.off.clear();
    });
  }

  async attempt(change) {
    await attempt(this.problem, change);
    this.draw();
  }
}

class Row {
  constructor(faults) {
    this.name = el("span", { class: "name" });
    this.turn = button("", () => faults.turn(this.rule), { class: "switch", role: "switch" });
    this.remove = button("Remove", () => faults.remove(this.rule));
    this.description = el("span", { class: "text mono" });
    this.hits = el("span", { class: "text" });
    this.node = el("li", {}, this.name, el("span", { class: "value edit" }, this.turn, this.remove), this.description, this.hits);
  }

  update(rule) {
    this.rule = rule;
    setText(this.name, named(rule.id, ""));
    setAttribute(this.turn, "aria-checked", String(rule.state !== "off"));
    setAttribute(this.turn, "aria-label", `Fault rule ${rule.id}`);
    setAttribute(this.remove, "aria-label", `Remove fault rule ${rule.id}`);
    setText(this.description, inWords(rule.rule));
    const hits = `${counted(rule.hits, "hit")} of ${count(rule.matched)} matched`;
    setText(this.hits, `${STATES[rule.state] ?? rule.state} · ${hits}${rule.problem ? ` · ${rule.problem}` : ""}`);
  }
}

function inWords(rule) {
  const { action, id, ...rest } = rule;
  const { kind, ...fields } = typeof action === "string" ? { kind: action } : action;
  const pairs = [["action", kind], ...Object.entries(fields), ...Object.entries(rest)];
  return pairs.map(([name, value]) => `${name}=${Array.isArray(value) ? value.join(",") : value}`).join(" ");
}
