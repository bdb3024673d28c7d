// Scenarios: the catalogue, and the current or last run.

import { get, send } from "./api.js";
import { button, byId, el, setText } from "./dom.js";
import { counted, seconds } from "./format.js";
import { attempt, problemNode } from "./problem.js";

const EVERY_MS = 1000;
const SHOWN_STEPS = 40;

export class Scenarios {
  constructor() {
    this.problem = byId("scenario-problem");
    this.area = byId("scenario-run");
    this.list = byId("scenario-rows");
    this.timer = 0;
    this.report = null;
    const catalogue = byId("scenario-catalogue");
    catalogue.addEventListener("toggle", () => catalogue.open && !this.list.childElementCount && this.load());
  }

  /** Handles a new stream: a scenario may be running. */
  begin() {
    this.look();
  }

  /** Handles a step in the journal: a scenario is running. */
  stepped() {
    if (!this.timer) this.look();
  }

  async load() {
    await attempt(this.problem, async () => {
      const { scenarios } = await get("/api/v1/scenarios");
      this.list.replaceChildren(...scenarios.map((each) => this.entry(each)));
    });
  }

  entry({ name, description, brokers, duration_ms: durationMs, loses_records: loses }) {
    const problem = problemNode();
    const needs = `${counted(brokers, "broker")}, ${seconds(durationMs / 1000)}${loses ? ", loses records" : ""}`;
    return el("li", {},
      el("span", { class: "name" }, name),
      button("Run", () => this.run(name, problem), { "aria-label": `Run ${name}` }),
      el("span", { class: "text" }, description), el("span", { class: "text" }, needs), problem);
  }

  async run(name, problem) {
    await attempt(problem, async () => {
      this.draw(await send("POST", "/api/v1/scenarios/run", { name }));
      this.look();
    });
  }

  async stop() {
    await attempt(this.problem, async () => this.draw(await send("DELETE", `/api/v1/scenarios/runs/${encodeURIComponent(this.report.id)}`)));
  }

  async look() {
    clearTimeout(this.timer);
    this.timer = 0;
    try {
      const { runs } = await get("/api/v1/scenarios/runs");
      if (!runs.length) return;
      this.draw(runs.at(-1));
      if (!runs.at(-1).done) this.timer = setTimeout(() => this.look(), EVERY_MS);
    } catch { /* the stream reports that the broker cannot be reached */ }
  }

  draw(report) {
    if (this.report?.id !== report.id) this.build(report);
    this.report = report;
    this.stopping.hidden = report.done;
    this.progress.hidden = report.done;
    this.progress.max = Math.max(1, report.duration_ms);
    this.progress.value = Math.min(report.elapsed_ms, report.duration_ms);
    setText(this.state, `${report.state}, ${seconds(report.elapsed_ms / 1000)} of ${seconds(report.duration_ms / 1000)}`);
    const steps = report.steps.slice(-SHOWN_STEPS);
    const first = report.steps.length - steps.length;
    while (this.steps.childElementCount && Number(this.steps.firstElementChild.dataset.at) < first) this.steps.firstElementChild.remove();
    const known = this.steps.childElementCount ? Number(this.steps.lastElementChild.dataset.at) + 1 : first;
    for (let at = known; at < report.steps.length; at++) this.steps.append(stepOf(report.steps[at], at));
  }

  build(report) {
    this.progress = el("progress", { "aria-label": `Progress of ${report.scenario}` });
    this.state = el("span", { class: "text" });
    this.steps = el("ol", { class: "text" });
    this.stopping = button("Stop", () => this.stop(), { "aria-label": `Stop ${report.scenario}` });
    this.area.replaceChildren(el("ul", { class: "list" }, el("li", {},
      el("span", { class: "name" }, report.scenario), this.stopping, this.state,
      el("span", { class: "text" }, this.progress), this.steps)));
  }
}

function stepOf(step, at) {
  return el("li", { "data-at": at }, el("span", { class: "mono" }, `${seconds(step.at_ms / 1000)} `), step.what,
    step.problem ? el("span", { class: "problem" }, step.problem) : null);
}
