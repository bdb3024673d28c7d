// The quotas in force, editable in place, and a form for new ones.

import { Children, button, byId, el, setText } from "./dom.js";
import { editable } from "./editable.js";
import { field, showProblemAt } from "./field.js";
import { countOf, entityInWords, measured } from "./format.js";
import { attempt, problemNode } from "./problem.js";
import { setQuota } from "./quota_api.js";

const KEYS = {
  producer_byte_rate: "produce",
  consumer_byte_rate: "fetch",
  request_percentage: "request time",
  controller_mutation_rate: "partitions created and deleted",
  connection_creation_rate: "new connections",
};
// Label, names that the user enters, entity if there are none.
const ENTITIES = [
  ["One client id", ["client-id"]],
  ["Every client id", [], { "client-id": null }],
  ["One user", ["user"]],
  ["Every user", [], { user: null }],
  ["One client id of one user", ["user", "client-id"]],
  ["One IP address", ["ip"]],
];
const NAMES = { user: "User", "client-id": "Client id", ip: "IP address" };

export class Quotas {
  constructor() {
    this.rows = new Children(byId("quota-rows"), (quota) => new Row(quota));
    byId("quota-form").append(form());
  }

  show({ rows, total }) {
    byId("quota-none").hidden = total > 0;
    setText(byId("quota-none"), "No quota is set. Clients are never throttled.");
    setText(byId("quota-count"), total ? countOf(rows.length, total) : "");
    this.rows.show(rows, (quota) => JSON.stringify([quota.entity, quota.key]));
  }
}

class Row {
  constructor(quota) {
    const label = `${entityInWords(quota.entity)}: ${KEYS[quota.key]}`;
    this.problem = problemNode();
    this.value = editable({
      label,
      shown: () => measured(quota.key, this.quota.value),
      unset: "none",
      value: () => this.quota.value,
      save: (text) => setQuota(quota.key, quota.entity, text),
    });
    const remove = () => attempt(this.problem, () => setQuota(quota.key, quota.entity, ""));
    this.remove = button("Remove", remove, { "aria-label": `Remove the quota of ${label}` });
    this.origin = el("small", { class: "sub" }, "broker property");
    this.node = el("li", {},
      el("span", { class: "name" }, entityInWords(quota.entity)),
      el("span", { class: "value" }, this.remove, this.origin),
      el("span", { class: "text" }, `${KEYS[quota.key]}: `, this.value.node),
      this.problem);
  }

  update(quota) {
    this.quota = quota;
    this.remove.hidden = !quota.altered;
    this.origin.hidden = quota.altered;
    this.value.update();
  }
}

function form() {
  const whose = el("select", { name: "whose", change: shape }, ...ENTITIES.map(([label], at) => el("option", { value: at }, label)));
  const key = el("select", { name: "key" }, ...Object.entries(KEYS).map(([name, label]) => el("option", { value: name }, label)));
  const named = (name) => field(NAMES[name], el("input", { name, autocomplete: "off", spellcheck: "false" }));
  const names = Object.fromEntries(Object.keys(NAMES).map((name) => [name, named(name)]));
  const value = field("Limit per second", el("input", { name: "value", placeholder: "1M", autocomplete: "off" }));
  const problem = problemNode("p", { class: "problem whole" });
  const places = { quotas: value, ...Object.fromEntries(Object.entries(names).map(([name, each]) => [`entity.${name}`, each])) };
  const node = el("form", { class: "form", autocomplete: "off", submit },
    el("label", { class: "field" }, "Entity", whose), el("label", { class: "field" }, "Quota", key),
    ...Object.values(names).map((each) => each.node), value.node, problem,
    el("span", { class: "whole" }, el("button", { class: "main" }, "Set")));
  shape();
  return node;

  function shape() {
    const [, wanted] = ENTITIES[whose.value || 0];
    for (const [name, each] of Object.entries(names)) each.node.hidden = !wanted.includes(name);
    const isOfAddress = wanted.includes("ip");
    for (const option of key.options) option.disabled = (option.value === "connection_creation_rate") !== isOfAddress;
    if (key.selectedOptions[0]?.disabled ?? true) key.value = [...key.options].find((option) => !option.disabled).value;
    showProblemAt(places, problem, null);
  }

  async function submit(event) {
    event.preventDefault();
    const [, wanted, entity] = ENTITIES[whose.value];
    try {
      await setQuota(key.value, entity ?? Object.fromEntries(wanted.map((name) => [name, names[name].input.value])), value.input.value.trim());
      showProblemAt(places, problem, null);
      value.input.value = "";
    } catch (error) {
      showProblemAt(places, problem, error);
    }
  }
}
