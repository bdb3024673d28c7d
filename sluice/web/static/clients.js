// The table of clients: search, order and pages.

import { Children, button, byId, cell, el, setAttribute, setText } from "./dom.js";
import { countOf, counted, milliseconds, named, seconds } from "./format.js";
import { Meter, Spark } from "./meter.js";
import { setQuota } from "./quota_api.js";

const PAGE = matchMedia("(max-width: 760px)").matches ? 6 : 25; // rows are cards on a phone
const TYPING_MS = 250;
const OTHERS = { Request: "request time", ControllerMutation: "partitions created and deleted" };

export class Clients {
  /** `onViewChange()` is called when the view changes, `explain(client)` when a client is clicked. */
  constructor(onViewChange, explain) {
    this.view = { search: "", sort: "activity", page: 0, size: PAGE };
    this.seen = new Map(); // by id
    this.order = [];
    this.clock = { offset: 0, look: 0, kept: 240 };
    this.rows = new Children(byId("client-rows"), (client) => new Row(client, this.clock, explain));
    const form = byId("client-search");
    let typing = 0;
    const changed = (change) => {
      Object.assign(this.view, { page: 0 }, change);
      onViewChange();
    };
    form.addEventListener("submit", (event) => event.preventDefault());
    form.elements.search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => changed({ search: form.elements.search.value }), TYPING_MS);
    });
    form.elements.sort.addEventListener("change", () => changed({ sort: form.elements.sort.value }));
    byId("client-pages").addEventListener("click", (event) => {
      const step = Number(event.target.dataset.step ?? 0);
      if (step) changed({ page: Math.max(0, this.view.page + step) });
    });
  }

  /** Resets the table for a new stream, which sends everything. */
  begin() {
    this.seen.clear();
    this.rows.byKey.forEach((row) => row.forget());
  }

  show(message) {
    if (message.look === undefined) return;
    this.clock.offset = message.at_ms - Date.now();
    this.clock.look = message.look;
    const clients = message.clients;
    if (clients !== undefined) {
      for (const row of clients.rows) this.seen.set(row.id, row);
      this.order = clients.order;
      this.total(clients);
    }
    const shown = this.inPlace(this.order).map((id) => this.seen.get(id)).filter(Boolean);
    this.rows.show(shown, (client) => client.id);
    for (const [id, row] of this.rows.byKey) row.draw(clients?.points[id] ?? []);
  }

  /** Keeps the order of the rows while one of them has the focus, so that Tab reaches each row once. */
  inPlace(order) {
    const current = this.rows.byKey;
    if (!this.rows.parent.contains(document.activeElement)) return order;
    const wanted = new Set(order);
    return [...[...current.keys()].filter((id) => wanted.has(id)), ...order.filter((id) => !current.has(id))];
  }

  total({ total, matched }) {
    const { page, size, search } = this.view;
    byId("client-table").hidden = !this.order.length;
    byId("client-legend").hidden = !this.order.some((id) => this.seen.get(id)?.meters.some((seen) => seen.bound !== null));
    setText(byId("client-count"), countOf(matched, total));
    byId("client-none").hidden = total === 0 || matched > 0;
    setText(byId("client-none"), `No client id or user contains “${search}”.`);
    const pages = Math.max(1, Math.ceil(matched / size));
    const [previous, next] = byId("client-pages").querySelectorAll("button");
    byId("client-pages").hidden = pages === 1 && page === 0;
    previous.disabled = page === 0;
    next.disabled = page + 1 >= pages;
    setText(byId("client-page"), `${page + 1} of ${pages}`);
    byId("client-ids").replaceChildren(...this.order.map((id) => el("option", { value: this.seen.get(id)?.client_id ?? "" })));
  }
}

class Row {
  constructor(client, clock, explain) {
    this.clock = clock;
    this.client = client;
    this.name = button("", () => explain(this.client), { class: "plain" });
    this.about = el("small");
    const label = named(client.client_id, "(no id)");
    const save = (kind) => (text, seen) => setQuota(kind, bucketOf(this.client, seen), text);
    this.meters = [
      new Meter("Produce", `${label}: produce`, save("producer_byte_rate")),
      new Meter("Fetch", `${label}: fetch`, save("consumer_byte_rate")),
    ];
    this.throttled = el("span");
    this.why = el("small", { class: "sub" });
    this.spark = new Spark();
    this.total = cell("Throttled in total", "number");
    this.node = el("tr", { role: "row" },
      cell(null, "identity", this.name, this.about),
      ...this.meters.map((meter) => cell(meter.kind, null, meter.node)),
      cell("Throttle time", null, this.throttled, this.why),
      cell("Last two minutes", "wide", this.spark.node),
      this.total);
  }

  forget() {
    this.spark.points = [];
  }

  update(client) {
    this.client = client;
    const name = named(client.client_id, "(no id)");
    setText(this.name, name);
    setAttribute(this.name, "aria-label", `${name}: explain its quotas`);
    setText(this.about, aboutOf(client));
    setAttribute(this.about, "title", this.about.textContent); // the text may be truncated
    const known = [...client.meters, ...client.limits];
    for (const meter of this.meters) meter.update(known.find((seen) => seen.kind === meter.kind) ?? null);
    const total = client.meters.reduce((sum, seen) => sum + seen.throttled_total_ms, 0);
    setText(this.total, total ? seconds(total / 1000) : "—");
  }

  draw(points) {
    this.spark.add(points);
    this.spark.draw(this.clock.look, this.clock.kept);
    const now = Date.now() + this.clock.offset;
    const throttled = this.client.meters.filter((seen) => seen.held_until_ms > now);
    const longest = throttled.reduce((best, seen) => (best && best.held_until_ms >= seen.held_until_ms ? best : seen), null);
    this.throttled.className = longest ? "throttled" : "none";
    setText(this.throttled, longest ? milliseconds(longest.throttle_ms) : "—");
    const left = longest ? `${milliseconds(longest.held_until_ms - now)} left` : "";
    const other = longest && OTHERS[longest.kind] ? `, for ${OTHERS[longest.kind]}` : "";
    setText(this.why, left + other);
  }
}

/** Returns the entity whose usage is counted, so that a new quota takes effect at once. */
function bucketOf(client, seen) {
  const entity = {};
  if (seen !== null && seen.user !== null) entity.user = seen.user;
  if (seen === null || seen.client_id !== null || seen.user === null) entity["client-id"] = client.client_id;
  return entity;
}

function aboutOf(client) {
  const parts = [client.connections ? counted(client.connections, "connection") : "disconnected"];
  if (client.user !== "ANONYMOUS") parts.push(named(client.user, "(no user)"));
  if (client.software) parts.push(named(client.software, ""));
  return parts.map((part) => part.replaceAll(" ", "\u00a0")).join(" · "); // so that lines break between the parts
}
