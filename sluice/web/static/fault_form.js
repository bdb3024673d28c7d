// A form for a fault rule, built from the broker's JSON Schema; or the rule as JSON.

import { get, send, messageOf } from "./api.js";
import { el } from "./dom.js";
import { field, showProblemAt } from "./field.js";
import { problemNode, showProblem } from "./problem.js";

// Frequently used fields of a rule; the others are folded.
const FIRST = ["api", "client_id", "topic", "times", "probability", "broker"];
const OTHERS_OF = new Set(["action"]);
const EXAMPLE = `{
  "action": { "kind": "error", "code": "NOT_LEADER_OR_FOLLOWER" },
  "api": "Produce",
  "schedule": "3 fail, 2 pass, repeat"
}`;

export class FaultForm {
  constructor(parent) {
    this.parent = parent;
    this.schema = null;
  }

  async open() {
    if (this.schema !== null) return;
    try {
      this.schema = (await get("/api/v1/faults/schema")).$defs;
      this.build();
    } catch (error) {
      this.parent.replaceChildren(el("p", { class: "problem" }, messageOf(error)));
    }
  }

  build() {
    const { Rule } = this.schema;
    this.kinds = actionsOf(Rule);
    this.kind = el("select", { name: "kind", change: () => this.shape() },
      ...Object.keys(this.kinds).map((kind) => el("option", { value: kind }, kind)));
    this.about = el("span");
    this.action = field("Kind of fault", this.kind, this.about);
    this.action.node.classList.add("whole");
    this.ofAction = el("div", { class: "form whole" });
    const others = Object.keys(Rule.properties).filter((name) => !OTHERS_OF.has(name) && !FIRST.includes(name));
    this.fields = Object.fromEntries([...FIRST, ...others].map((name) => [name, fieldOf(name, Rule.properties[name])]));
    this.json = el("textarea", { name: "json", spellcheck: "false", rows: 8 });
    this.json.value = EXAMPLE;
    this.byJson = field("Rule as JSON", this.json);
    this.byJson.node.classList.add("whole");
    this.byJson.node.hidden = true;
    this.problem = problemNode("p", { class: "problem whole" });
    this.byFields = el("div", { class: "form whole" },
      this.action.node, this.ofAction,
      ...FIRST.map((name) => this.fields[name].node),
      el("details", { class: "whole" }, el("summary", {}, "More fields"),
        el("div", { class: "form" }, ...others.map((name) => this.fields[name].node))));
    this.asJson = el("input", { type: "checkbox", change: () => this.turn() });
    this.parent.replaceChildren(el("form", { class: "form", autocomplete: "off", novalidate: true, submit: (event) => this.submit(event) },
      el("label", { class: "field check whole" }, this.asJson, "Edit as JSON"),
      this.byFields, this.byJson.node, this.problem,
      el("span", { class: "whole" }, el("button", { class: "main" }, "Add rule"))));
    this.shape();
  }

  shape() {
    const action = this.schema[this.kinds[this.kind.value]];
    this.about.textContent = action.description ?? "";
    this.actionFields = Object.fromEntries(
      Object.entries(action.properties).filter(([name]) => name !== "kind")
        .map(([name, property]) => [name, fieldOf(name, property, (action.required ?? []).includes(name))]));
    this.ofAction.replaceChildren(...Object.values(this.actionFields).map((each) => each.node));
  }

  turn() {
    const isJson = this.asJson.checked;
    if (isJson && Object.keys(this.rule()).length > 1) this.json.value = JSON.stringify(this.rule(), null, 2);
    this.byJson.node.hidden = !isJson;
    this.byFields.hidden = isJson;
    showProblem(this.problem, "");
  }

  rule() {
    return { action: { kind: this.kind.value, ...valuesOf(this.actionFields) }, ...valuesOf(this.fields) };
  }

  async submit(event) {
    event.preventDefault();
    const isJson = this.asJson.checked;
    this.byJson.failed("");
    let rule;
    try {
      rule = isJson ? JSON.parse(this.json.value) : this.rule();
    } catch (error) {
      this.byJson.failed(`Invalid JSON: ${error.message}`);
      return;
    }
    try {
      await send("POST", "/api/v1/faults", rule);
      showProblemAt(this.places(), this.problem, null);
      for (const each of Object.values(this.fields)) each.clear();
    } catch (error) {
      if (isJson) this.byJson.failed(messageOf(error));
      else showProblemAt(this.places(), this.problem, error);
    }
  }

  places() {
    const ofAction = Object.entries(this.actionFields).map(([name, each]) => [`action.${name}`, each]);
    return { ...this.fields, action: this.action, ...Object.fromEntries(ofAction) };
  }
}

/** The names of the actions' definitions, by kind. */
function actionsOf(rule) {
  const mapping = rule.properties.action.anyOf.find((each) => each.discriminator).discriminator.mapping;
  return Object.fromEntries(Object.entries(mapping).map(([kind, ref]) => [kind, ref.split("/").pop()]));
}

/** Creates a field from the schema of its value; `value()` returns the input, or undefined if it is empty. */
function fieldOf(name, property, required = false) {
  const types = property.anyOf ?? [property];
  const choices = types.flatMap((type) => type.enum ?? []).filter((word) => word !== null);
  const isTruth = types.some((type) => type.type === "boolean");
  const input = choices.length || isTruth
    ? el("select", {}, el("option", { value: "" }, "—"),
        ...(isTruth ? ["true", "false"] : choices).map((word) => el("option", { value: word }, String(word))))
    : el("input", { autocomplete: "off", spellcheck: "false", "aria-required": required || null,
        placeholder: property.default === undefined || property.default === null ? "" : String(property.default) });
  return {
    ...field(name, input, property.description ?? ""),
    value: () => (input.value.trim() === "" ? undefined : valueOf(input.value.trim(), types)),
    clear: () => { input.value = ""; },
  };
}

/** Converts the input to a type that the field accepts; the broker rejects other input. */
function valueOf(text, types) {
  const has = (type) => types.some((each) => each.type === type);
  const items = types.find((each) => each.type === "array")?.items;
  if (items && (text.includes(",") || !has(items.type))) return text.split(",").map((item) => valueOf(item.trim(), items.anyOf ?? [items]));
  if (has("boolean") && (text === "true" || text === "false")) return text === "true";
  if ((has("integer") || has("number")) && text !== "" && !Number.isNaN(Number(text))) return Number(text);
  return text;
}

function valuesOf(fields) {
  return Object.fromEntries(Object.entries(fields).map(([name, each]) => [name, each.value()]).filter(([, value]) => value !== undefined));
}
