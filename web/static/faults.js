// The fault rules: conditions, hits, and switches.

import { send, messageOf } from "./api.js";
import { Children, byId, el, setAttribute, setText, showProblem } from "./dom.js";
import { FaultForm } from "./fault_form.js";
import { count, named } from "./format.js";

const STATES = { "in force": "active", over: "exhausted: no more hits", disabled: "disabled by an error", off: "switched off" };

export class Faults {
  constructor() {
    this.off = new Map(); // by id: rules that this page has switched off
    this.shown = [];
    this.total = 0;
    this.problem = byId("fault-problem");
    this.rows = new Children(byId("fault-rows"), () => new Row(this));
    this.form = new FaultForm(byId("fault-form"));
    byId("fault-new").addEventListener("toggle", () => this.form.open());
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
    setText(byId("fault-count"), this.total > this.shown.length ? `${count(this.shown.length)} of ${count(this.total)}` : this.total ? count(this.total) : "");
    this.rows.show(rows, (rule) => rule.id);
  }

  async turn(rule) {
    const isOff = rule.state === "off";
    await this.attempt(async () => {
      if (isOff) await send("POST", "/api/v1/faults", { ...rule.rule, id: rule.id });
      else await send("DELETE", `/api/v1/faults/${encodeURIComponent(rule.id)}`);
      this.off.set(rule.id, { ...rule, state: isOff ? "in force" : "off" });
    });
  }

  async remove(rule) {
    await this.attempt(async () => {
      if (rule.state !== "off") await send("DELETE", `/api/v1/faults/${encodeURIComponent(rule.id)}`);
      this.off.delete(rule.id);
    });
  }

  async attempt(change) {
    try {
      await change();
      showProblem(this.problem, "");
    } catch (error) {
      showProblem(this.problem, messageOf(error));
    }
    this.draw();
  }
}

class Row {
  constructor(faults) {
    this.name = el("span", { class: "name" });
    this.turn = el("button", { type: "button", class: "switch", role: "switch", click: () => faults.turn(this.rule) });
    this.remove = el("button", { type: "button", click: () => faults.remove(this.rule) }, "Remove");
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
    const hits = `${count(rule.hits)} hit${rule.hits === 1 ? "" : "s"} of ${count(rule.matched)} matched`;
    setText(this.hits, `${STATES[rule.state] ?? rule.state} · ${hits}${rule.problem ? ` · ${rule.problem}` : ""}`);
  }
}

function inWords(rule) {
  const { action, id, ...rest } = rule;
  const { kind, ...fields } = typeof action === "string" ? { kind: action } : action;
  const pairs = [["action", kind], ...Object.entries(fields), ...Object.entries(rest)];
  return pairs.map(([name, value]) => `${name}=${Array.isArray(value) ? value.join(",") : value}`).join(" ");
}
