// The connections of the clients that match the search; requested only while the list is open.

import { Children, byId, cell, el, setText } from "./dom.js";
import { countOf, named, seconds } from "./format.js";

export class Connections {
  constructor(onViewChange) {
    this.list = byId("connection-list");
    this.list.addEventListener("toggle", onViewChange);
    this.rows = new Children(byId("connection-rows"), () => new Row());
  }

  get view() {
    return this.list.open ? { connections: true } : {};
  }

  show({ rows, total }) {
    setText(byId("connection-count"), countOf(rows.length, total));
    this.rows.show(rows, (row) => `${row.broker} ${row.peer} ${row.listener}`);
  }
}

class Row {
  constructor() {
    this.client = el("b");
    this.about = el("small");
    this.cells = [cell("From"), cell("To"), cell("Last request"), cell("Open for", "number"), cell("Idle for", "number")];
    this.node = el("tr", { role: "row" }, cell(null, "identity", this.client, this.about), ...this.cells);
  }

  update(row) {
    setText(this.client, named(row.client_id, "(no id)"));
    setText(this.about, [row.user === "ANONYMOUS" ? "" : row.user, row.software].filter(Boolean).map((text) => named(text, "")).join(" · "));
    const texts = [row.peer, `broker ${row.broker}, ${row.listener}`, row.api + (row.waiting ? ", waiting" : ""), seconds(row.age_s), seconds(row.idle_s)];
    texts.forEach((text, at) => setText(this.cells[at], text));
  }
}
