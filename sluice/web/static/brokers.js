// The brokers: state, traffic, and buttons for the actions that each state allows.

import { send } from "./api.js";
import { Children, button, byId, cell, el, setText } from "./dom.js";
import { bytesPerSecond, count } from "./format.js";
import { attempt } from "./problem.js";

const LABELS = { start: "Start", stop: "Stop", isolate: "Isolate", rejoin: "Rejoin" };
const TITLES = {
  start: "Restart the broker at its former address",
  stop: "Move its leaders to other brokers, then shut down",
  isolate: "Disconnect the broker from the controller and the other brokers, but not from clients",
  rejoin: "Reconnect the broker to the controller and the other brokers",
};
const TITLES_AT_PROXY = {
  start: "Open the port of the proxy again",
  stop: "Close the port of the proxy and its connections; the upstream broker keeps running",
  isolate: "Neither read nor send on connections of clients, which stay open; the upstream broker keeps running",
  rejoin: "Read and send on connections of clients again",
};

export class Brokers {
  constructor() {
    this.problem = byId("broker-problem");
    const change = (path) => attempt(this.problem, () => send("POST", path));
    this.rows = new Children(byId("broker-rows"), (broker) => new Row(broker, change));
  }

  show(brokers) {
    setText(byId("broker-last"), brokers[0]?.upstream ? "Upstream broker" : "Partitions led");
    this.rows.show(brokers, (broker) => broker.id);
  }
}

class Row {
  constructor({ id, upstream }, change) {
    const titles = upstream ? TITLES_AT_PROXY : TITLES;
    this.where = el("small");
    this.state = el("span", { class: "badge" });
    this.fenced = el("small", { class: "sub" });
    const cells = { requests: "Requests", in: "In", out: "Out", connections: "Connections", last: upstream ? "Upstream broker" : "Partitions led" };
    this.cells = Object.fromEntries(Object.entries(cells).map(([name, label]) => [name, cell(label, "number")]));
    this.connections = el("span");
    this.throttled = el("small", { class: "sub" });
    this.cells.connections.append(this.connections, this.throttled);
    this.last = el("span");
    this.lastNote = el("small", { class: "sub" });
    this.cells.last.append(this.last, this.lastNote);
    this.buttons = Object.entries(LABELS).map(([action, label]) => [action, button(label,
      () => change(`/api/v1/brokers/${id}/${action}`), { title: titles[action], "aria-label": `${label} broker ${id}` })]);
    this.node = el("tr", { role: "row" },
      cell(null, "identity", el("b", {}, `broker ${id}`), this.where), cell(null, null, this.state, this.fenced),
      ...Object.values(this.cells), cell(null, "actions", ...this.buttons.map(([, node]) => node)));
  }

  update(broker) {
    setText(this.where, Object.values(broker.listeners).join(", "));
    setText(this.state, broker.state);
    this.state.dataset.state = broker.state;
    setText(this.fenced, broker.fenced ? "fenced by the controller" : "");
    setText(this.cells.requests, `${count(broker.requests_per_s)}/s`);
    setText(this.cells.in, bytesPerSecond(broker.in_per_s));
    setText(this.cells.out, bytesPerSecond(broker.out_per_s));
    setText(this.connections, count(broker.connections));
    setText(this.throttled, broker.throttled ? `${count(broker.throttled)} throttled` : "");
    setText(this.last, broker.upstream ? broker.upstream.address : count(broker.leads));
    setText(this.lastNote, broker.upstream ? behind(broker.upstream) : "");
    this.lastNote.classList.toggle("bad", broker.upstream?.reachable === false);
    for (const [action, node] of this.buttons) {
      const can = broker.can.includes(action);
      if (!can && document.activeElement === node) node.dataset.hadFocus = "";
      node.hidden = !can;
    }
    const lost = this.buttons.find(([, node]) => "hadFocus" in node.dataset);
    if (lost !== undefined) { // move the focus from the hidden button to the one that replaces it
      delete lost[1].dataset.hadFocus;
      this.buttons.find(([, node]) => !node.hidden)?.[1].focus();
    }
  }
}

function behind({ reachable, in_flight: inFlight }) {
  return reachable ? `${count(inFlight)} in flight` : "unreachable";
}
