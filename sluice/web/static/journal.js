// The live journal, newest events first.

import { byId, el, setText } from "./dom.js";
import { clock, count, named } from "./format.js";
import { markInvalid, showProblem } from "./problem.js";

const MOST = 300;
const TYPING_MS = 400;
const MARKS = { wait: "‖", fault: "✗", error: "!", "": "" };
const KINDS = [
  "request", "throttle", "fault", "connection-opened", "connection-closed", "connection-refused", "group-state",
  "transaction-state", "acquisition-timeout", "leader-change", "broker-state", "scenario-step",
];
const APIS = ["Produce", "Fetch", "Metadata", "ListOffsets", "FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat",
  "OffsetCommit", "OffsetFetch", "ApiVersions", "CreateTopics", "InitProducerId", "ConsumerGroupHeartbeat"];

export class Journal {
  constructor(onViewChange) {
    this.lines = byId("journal-lines");
    this.none = byId("journal-none");
    this.paused = false;
    this.missed = 0;
    this.size = null; // unknown until the first message
    this.form = byId("journal-filter");
    this.form.elements.kind.append(...KINDS.map((kind) => el("option", { value: kind }, kind)));
    byId("api-names").replaceChildren(...APIS.map((api) => el("option", { value: api })));
    let typing = 0;
    const changed = () => {
      clearTimeout(typing);
      typing = setTimeout(onViewChange, TYPING_MS);
    };
    this.form.addEventListener("input", changed);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(typing);
      onViewChange();
    });
    this.button = byId("journal-pause");
    this.button.addEventListener("click", () => this.pause(!this.paused));
  }

  get view() {
    return Object.fromEntries(new FormData(this.form));
  }

  begin() {
    this.lines.replaceChildren();
    this.missed = 0;
    this.problem("");
    this.updateEmpty();
  }

  problem(message) {
    showProblem(byId("journal-problem"), message);
    const at = /^(kind|client_id|api|broker)=/.exec(message)?.[1];
    for (const name of ["kind", "client_id", "api"]) markInvalid(this.form.elements[name], name === at);
  }

  cluster({ journal_size: size }) {
    this.size = size;
    this.updateEmpty();
  }

  show({ lines, left_off: leftOff }) {
    if (this.paused) {
      this.missed += lines.length + leftOff;
      setText(this.button, `Resume (${count(this.missed)} new)`);
      return;
    }
    const isAtTop = this.lines.scrollTop < 4;
    const height = this.lines.scrollHeight;
    const nodes = lines.map(lineOf).reverse();
    if (leftOff) nodes.push(el("li", { class: "gap" }, el("span"), el("span"), el("span", { class: "what" }, `${count(leftOff)} more events omitted`)));
    this.lines.prepend(...nodes);
    while (this.lines.childElementCount > MOST) this.lines.lastElementChild.remove();
    if (!isAtTop) this.lines.scrollTop += this.lines.scrollHeight - height; // keep the visible lines in place
    this.updateEmpty();
  }

  pause(paused) {
    this.paused = paused;
    this.missed = 0;
    this.button.setAttribute("aria-pressed", String(paused));
    setText(this.button, paused ? "Resume" : "Pause");
  }

  updateEmpty() {
    this.none.hidden = this.lines.childElementCount > 0;
    this.lines.hidden = !this.none.hidden;
    if (this.size === null) return;
    setText(this.none, this.size
      ? "No matching events yet."
      : "The journal is disabled. Start the broker with --override sluice.journal.events=16384 to enable it.");
  }
}

function lineOf(line) {
  return el("li", { "data-tone": line.tone },
    el("time", {}, clock(line.at_ms)),
    el("span", { class: "mark" }, MARKS[line.tone], line.tone ? el("span", { class: "unseen" }, line.tone) : null),
    el("span", { class: "from" }, line.client_id ? named(line.client_id, "") : line.connection ? `#${line.connection}` : `broker ${line.broker}`),
    el("span", { class: "what" }, line.what));
}
