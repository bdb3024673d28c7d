// The brokers: state, traffic, and buttons for the actions that each state allows.

import { send, messageOf } from "./api.js";
import { Children, byId, el, setText, showProblem } from "./dom.js";
import { bytesPerSecond, count } from "./format.js";

const LABELS = { start: "Start", stop: "Stop", isolate: "Isolate", rejoin: "Rejoin" };
const TITLES = {
  start: "Restart the broker at its former address",
  stop: "Move its leaders to other brokers, then shut down",
  isolate: "Disconnect the broker from the controller and the other brokers, but not from clients",
  rejoin: "Reconnect the broker to the controller and the other brokers",
};

export class Brokers {
  constructor() {
    this.problem = byId("broker-problem");
    this.rows = new Children(byId("broker-rows"), (broker) => new Row(broker.id, (path) => this.change(path)));
  }

  show(brokers) {
    this.rows.show(brokers, (broker) => broker.id);
  }

  async change(path) {
    try {
      await send("POST", path);
      showProblem(this.problem, "");
    } catch (error) {
      showProblem(this.problem, messageOf(error));
    }
  }
}

class Row {
  constructor(id, change) {
    this.where = el("small");
    this.state = el("span", { class: "badge" });
    this.fenced = el("small", { class: "sub" });
    this.cells = {};
    const number = (name, label) => {
      this.cells[name] = el("td", { role: "cell", class: "number", "data-label": label });
      return this.cells[name];
    };
    this.buttons = Object.keys(LABELS).map((action) => [
      action,
      el("button", { type: "button", title: TITLES[action], "aria-label": `${LABELS[action]} broker ${id}`,
        click: () => change(`/api/v1/brokers/${id}/${action}`) }, LABELS[action]),
    ]);
    this.node = el("tr", { role: "row" },
      el("td", { role: "cell", class: "identity" }, el("b", {}, `broker ${id}`), this.where),
      el("td", { role: "cell" }, this.state, this.fenced),
      number("requests", "Requests"), number("in", "In"), number("out", "Out"),
      number("connections", "Connections"), number("leads", "Leader of"),
      el("td", { role: "cell", class: "actions" }, ...this.buttons.map(([, button]) => button)));
  }

  update(broker) {
    setText(this.where, Object.values(broker.listeners).join(", "));
    setText(this.state, broker.state);
    this.state.dataset.state = broker.state;
    setText(this.fenced, broker.fenced ? "fenced by the controller" : "");
    setText(this.cells.requests, `${count(broker.requests_per_s)}/s`);
    setText(this.cells.in, bytesPerSecond(broker.in_per_s));
    setText(this.cells.out, bytesPerSecond(broker.out_per_s));
    const throttled = broker.throttled ? ` (${count(broker.throttled)} throttled)` : "";
    setText(this.cells.connections, `${count(broker.connections)}${throttled}`);
    setText(this.cells.leads, `${count(broker.leads)} partition${broker.leads === 1 ? "" : "s"}`);
    for (const [action, button] of this.buttons) {
      const can = broker.can.includes(action);
      if (!can && document.activeElement === button) button.dataset.hadFocus = "";
      button.hidden = !can;
    }
    const lost = this.buttons.find(([, button]) => "hadFocus" in button.dataset);
    if (lost !== undefined) { // move the focus from the hidden button to the one that replaces it
      delete lost[1].dataset.hadFocus;
      this.buttons.find(([, button]) => !button.hidden)?.[1].focus();
    }
  }
}
