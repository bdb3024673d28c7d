// First steps, while there are no clients; and a hint, while there are no quotas.

import { button, byId, el } from "./dom.js";
import { attempt, problemNode } from "./problem.js";
import { setQuota } from "./quota_api.js";

export class Welcome {
  constructor() {
    this.cluster = null;
    this.total = null;
    this.card = byId("welcome");
    this.hint = byId("hint");
  }

  show(message) {
    if (message.cluster) {
      this.cluster = message.cluster;
      this.build();
    }
    if (message.clients) this.total = message.clients.total;
    if (this.cluster === null || this.total === null) return;
    this.card.hidden = this.total > 0;
    this.hint.hidden = this.total === 0 || this.cluster.counting;
  }

  build() {
    const { bootstrap, counting } = this.cluster;
    this.card.replaceChildren(
      el("h3", {}, "No client has connected yet"),
      el("ol", {},
        el("li", {}, "Connect a client with a client id to ", el("code", {}, bootstrap), ":",
          el("pre", { tabindex: "0", role: "region", "aria-label": "A producer in Python" }, `from kafka import KafkaProducer

producer = KafkaProducer(bootstrap_servers="${bootstrap}", client_id="bronze")
while True:
    producer.send("greetings", bytes(100_000)).get(timeout=60)`)),
        el("li", {}, counting ? "A quota is already set. A client that sends more is throttled." : "Set a quota, to throttle clients that send more: ",
          counting ? null : this.offer()),
        el("li", {}, "Watch the client here: the bar fills up to the quota, then the client is throttled. Click its name for the reason.")));
    this.hint.replaceChildren(
      el("span", {}, "No quota is set. Usage is not counted, and no client is throttled."), this.offer());
  }

  offer() {
    const problem = problemNode("span");
    const set = () => attempt(problem, () => setQuota("producer_byte_rate", { "client-id": null }, "1M"));
    return el("span", {}, button("1 MB/s for each producer", set), problem);
  }
}
