// The dialog with the quota decisions of a client, from the same data as `sluice explain`, updated while it is open.

import { get, messageOf } from "./api.js";
import { byId, el, setText, svg } from "./dom.js";
import { clock, count, entityInWords, measured, milliseconds, named } from "./format.js";

const EVERY_MS = 1000;
const TITLES = { Produce: "Produce", Fetch: "Fetch", Request: "Request time", ControllerMutation: "Partitions created and deleted" };

export class Explain {
  constructor() {
    this.dialog = byId("explain");
    this.body = byId("explain-body");
    this.client = null;
    this.timer = 0;
    this.dialog.addEventListener("close", () => this.closed());
    this.dialog.addEventListener("click", (event) => {
      if (event.target === this.dialog || event.target.closest("[data-close]")) this.dialog.close();
    });
  }

  open(client) {
    this.client = client;
    setText(byId("explain-title"), named(client.client_id, "(no id)"));
    this.body.replaceChildren(el("p", { class: "verdict" }, "…"));
    this.dialog.showModal();
    this.renew(client);
  }

  closed() {
    clearTimeout(this.timer);
    this.client = null;
  }

  async renew(client) {
    const query = new URLSearchParams({ client_id: client.client_id, user: client.user });
    let content;
    try {
      content = contentOf(await get(`/api/v1/quotas/explain?${query}`));
    } catch (error) {
      content = [el("p", { class: "problem" }, messageOf(error))];
    }
    if (this.client !== client) return;
    this.body.replaceChildren(...content);
    this.timer = setTimeout(() => this.renew(client), EVERY_MS);
  }
}

function contentOf(answer) {
  return [
    el("p", { class: "verdict" }, answer.mode === "shadow" ? `Shadow mode throttles no client. Enforced: ${verdict(answer)}` : verdict(answer), el("small", { class: "sub" },
      `user ${named(answer.user, "(no user)")}, quota.profile=${answer.profile}`)),
    ...articles(answer),
    ...connections(answer),
  ];
}

function verdict(answer) {
  const quotas = answer.brokers.flatMap((broker) => broker.quotas);
  const throttled = quotas.map((quota) => [quota, endOf(quota) - answer.at_ms]).filter(([, left]) => left > 0).sort((a, b) => b[1] - a[1]);
  if (throttled.length) {
    const [quota, left] = throttled[0];
    return `Throttled by its ${quota.kind} quota: ${milliseconds(left)} of ${milliseconds(quota.last_delay.throttle_ms)} left.`;
  }
  const bounded = quotas.filter((quota) => quota.bound !== null);
  if (!bounded.length) return "Not throttled: no quota applies to this client.";
  const over = bounded.find((quota) => quota.rate > quota.bound);
  if (over) return `Not throttled now, but above its ${over.kind} quota: the next request will be throttled.`;
  const wasThrottled = bounded.some((quota) => quota.last_delay !== null);
  return wasThrottled ? "Not throttled now; the last throttle time is below." : "Never throttled: within its quotas.";
}

/** For each kind of quota: the brokers with recorded usage, or one broker for the limit. */
function articles(answer) {
  const several = answer.brokers.length > 1;
  const all = answer.brokers.flatMap((broker) => broker.quotas.map((quota) => [quota, broker.node_id]));
  const recorded = all.filter(([quota]) => quota.rate !== null);
  const kinds = new Set(recorded.map(([quota]) => quota.kind));
  const rest = all.filter(([quota]) => quota.bound !== null && !kinds.has(quota.kind) && kinds.add(quota.kind));
  return [
    ...recorded.map(([quota, nodeId]) => article(quota, several ? `, broker ${nodeId}` : "")),
    ...rest.map(([quota]) => article(quota, "")),
  ];
}

function endOf(quota) {
  return quota.last_delay === null ? 0 : quota.last_delay.at_ms + quota.last_delay.throttle_ms;
}

function article(quota, where) {
  return el("article", {},
    el("h3", {}, `${TITLES[quota.kind] ?? quota.kind}${where}`),
    el("p", {}, rateInWords(quota)),
    ladder(quota), el("p", { class: "sub" }, `${quota.why}.`),
    ...window_(quota), ...lastDelay(quota));
}

function rateInWords(quota) {
  const bound = quota.bound === null ? "no quota" : `quota ${measured(quota.kind, quota.bound)}`;
  if (quota.rate === null) return `No usage recorded, ${bound}.`;
  return `Rate ${measured(quota.kind, quota.rate)}, ${bound}.`;
}

function ladder(quota) {
  const set = quota.candidates.filter((candidate) => candidate.bound !== null);
  return el("ul", { class: "ladder", "aria-label": "Matching quotas, most specific first" }, ...set.map((candidate) => {
    const entity = {};
    if (candidate.user !== null) entity.user = candidate.user === "<default>" ? null : candidate.user;
    if (candidate.client_id !== null) entity["client-id"] = candidate.client_id === "<default>" ? null : candidate.client_id;
    return el("li", { class: candidate.holds ? "applies" : "" }, el("span", {}, candidate.holds ? "applies" : ""),
      el("span", {}, entityInWords(entity)), el("span", {}, measured(quota.kind, candidate.bound)));
  }));
}

/** The samples in the window as bars, with the arithmetic of the rate. */
function window_(quota) {
  if (!quota.samples.length || quota.tokens !== null) return quota.arithmetic ? [sum("Now", quota.arithmetic)] : [];
  const most = Math.max(1, ...quota.samples.map((sample) => sample.value));
  const step = 100 / quota.samples.length;
  const bars = quota.samples.map((sample, at) => {
    const height = Math.max(0, (sample.value / most) * 54);
    return svg("rect", { x: at * step + 0.6, y: 56 - height, width: step - 1.2, height, class: sample.counts ? "" : "stale" });
  });
  const counting = quota.samples.filter((sample) => sample.counts);
  const requests = counting.reduce((all, sample) => all + sample.events, 0);
  return [
    svg("svg", { class: "samples", viewBox: "0 0 100 56", preserveAspectRatio: "none", role: "img",
      "aria-label": `${counting.length} samples with ${count(requests)} requests` }, ...bars),
    el("p", { class: "sub" }, `The window has ${counting.length} samples of about one second, oldest first, with ${count(requests)} requests. Usage leaves the window one sample at a time.`),
    sum("Rate: usage in the window ÷ length of the window", quota.arithmetic),
  ];
}

function lastDelay(quota) {
  const delay = quota.last_delay;
  if (delay === null) return [];
  return [
    sum(`Last throttle time, at ${clock(delay.at_ms)}`, delay.arithmetic),
    el("p", { class: "sub" }, quota.tokens === null
      ? "Formula: (rate − quota) ÷ quota × window. This is how long the excess takes at the rate of the quota."
      : "This is how long the missing tokens take to refill."),
    quota.throttle_time_avg_ms === null ? null
      : el("p", { class: "sub" }, `Throttled requests of the last minute: ${milliseconds(quota.throttle_time_avg_ms)} on average.`),
  ];
}

function sum(label, arithmetic) {
  return el("div", {}, el("p", { class: "sub" }, label), el("p", { class: "sum" }, arithmetic));
}

function connections(answer) {
  const all = answer.brokers.flatMap((broker) => broker.connections.map((connection) => ({ ...connection, broker: broker.node_id })));
  if (!all.length) return [];
  return [el("article", {}, el("h3", {}, "Connections"), el("ul", {}, ...all.slice(0, 20).map((connection) => el("li", {},
    el("span", { class: "mono" }, connection.peer), ` to broker ${connection.broker}`,
    connection.waits ? ", waiting" : "", averages(connection)))),
    all.length > 20 ? el("p", { class: "sub" }, `and ${count(all.length - 20)} more`) : null)];
}

function averages(connection) {
  const parts = ["produce", "fetch"]
    .filter((kind) => connection[`${kind}_throttle_time_avg_ms`] !== null)
    .map((kind) => `${kind} ${milliseconds(connection[`${kind}_throttle_time_avg_ms`])} on average, ${milliseconds(connection[`${kind}_throttle_time_max_ms`])} at most`);
  return parts.length ? `; throttle times of all requests in the last minute: ${parts.join(", ")}` : "";
}
