// The brokers: their state, what passes through them, and buttons for what may be done to them.

import { send, words } from "./api.js";
import { Children, byId, el, setText, tell } from "./dom.js";
import { bytesPerSecond, count } from "./format.js";

const LABELS = { start: "Start", stop: "Stop", isolate: "Isolate", rejoin: "Rejoin" };
const TITLES = {
  start: "Starts it again, where it was",
  stop: "Gives up what it leads, and stops",
  isolate: "Cuts it off from the controller and the other brokers; clients still reach it",
  rejoin: "Lets the others reach it again",
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
      tell(this.problem, "");
    } catch (error) {
      tell(this.problem, words(error));
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
    this.buttons = Object.keys(LABELS).map((what) => [
      what,
      el("button", { type: "button", title: TITLES[what], "aria-label": `${LABELS[what]} broker ${id}`,
        click: () => change(`/api/v1/brokers/${id}/${what}`) }, LABELS[what]),
    ]);
    this.node = el("tr", { role: "row" },
      el("td", { role: "cell", class: "who" }, el("b", {}, `broker ${id}`), this.where),
      el("td", { role: "cell" }, this.state, this.fenced),
      number("requests", "Requests"), number("in", "In"), number("out", "Out"),
      number("connections", "Connections"), number("leads", "Leads"),
      el("td", { role: "cell", class: "actions" }, ...this.buttons.map(([, button]) => button)));
  }

  update(broker) {
    setText(this.where, Object.values(broker.listeners).join(", "));
    setText(this.state, broker.state);
    this.state.dataset.state = broker.state;
    setText(this.fenced, broker.fenced ? "fenced: the controller takes it for dead" : "");
    setText(this.cells.requests, `${count(broker.requests_per_s)}/s`);
    setText(this.cells.in, bytesPerSecond(broker.in_per_s));
    setText(this.cells.out, bytesPerSecond(broker.out_per_s));
    const held = broker.throttled ? `, ${count(broker.throttled)} held` : "";
    setText(this.cells.connections, `${count(broker.connections)}${held}`);
    setText(this.cells.leads, `${count(broker.leads)} partition${broker.leads === 1 ? "" : "s"}`);
    for (const [what, button] of this.buttons) {
      const can = broker.can.includes(what);
      if (!can && document.activeElement === button) button.dataset.hadFocus = "";
      button.hidden = !can;
    }
    const lost = this.buttons.find(([, button]) => "hadFocus" in button.dataset);
    if (lost !== undefined) { // its button is gone: the one that has come in its place is next
      delete lost[1].dataset.hadFocus;
      this.buttons.find(([, button]) => !button.hidden)?.[1].focus();
    }
  }
}
