// What a newcomer does next: where nobody has connected yet, and where nothing is counted.

import { byId, el } from "./dom.js";
import { words } from "./api.js";
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
      el("h3", {}, "No client has come yet"),
      el("ol", {},
        el("li", {}, "Point a client at ", el("code", {}, bootstrap), " and give it a name:",
          el("pre", { tabindex: "0", role: "region", "aria-label": "A producer in Python" }, `from kafka import KafkaProducer

producer = KafkaProducer(bootstrap_servers="${bootstrap}", client_id="bronze")
while True:
    producer.send("greetings", bytes(100_000)).get(timeout=60)`)),
        el("li", {}, counting ? "A quota is set already: it will be made to wait as soon as it sends more." : "Give every client a quota, so that it is made to wait: ",
          counting ? null : this.offer()),
        el("li", {}, "Watch it here: the bar fills up to the quota, then the client waits. Its name tells why.")));
    this.hint.replaceChildren(
      el("span", {}, "No quota is set, so nothing that clients send is counted, and nobody waits."), this.offer());
  }

  offer() {
    const problem = el("span", { class: "problem", role: "alert", hidden: true });
    const set = async () => {
      try {
        await setQuota("producer_byte_rate", { "client-id": null }, "1M");
      } catch (error) {
        problem.textContent = words(error);
        problem.hidden = false;
      }
    };
    return el("span", {}, el("button", { type: "button", click: set }, "1 MB/s for each producer"), problem);
  }
}
