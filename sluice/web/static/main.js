// Connects the stream with the panels, which each show a part of it.

import { Brokers } from "./brokers.js";
import { Clients } from "./clients.js";
import { Connections } from "./connections.js";
import { byId, el, setText } from "./dom.js";
import { Explain } from "./explain.js";
import { Faults } from "./faults.js";
import { Journal } from "./journal.js";
import { Quotas } from "./quotas.js";
import { Scenarios } from "./scenarios.js";
import { Stream } from "./stream.js";
import { enableTokenDialog } from "./token.js";
import { Welcome } from "./welcome.js";

const explain = new Explain();
const brokers = new Brokers();
const clients = new Clients(subscribe, (client) => explain.open(client));
const connections = new Connections(subscribe);
const faults = new Faults();
const journal = new Journal(subscribe);
const quotas = new Quotas();
const scenarios = new Scenarios();
const welcome = new Welcome();
const live = byId("live");
const gone = byId("gone");

const stream = new Stream({
  begin() {
    clients.begin();
    journal.begin();
    scenarios.begin();
  },
  message(message) {
    if (message.cluster) cluster(message.cluster);
    if (message.brokers) brokers.show(message.brokers);
    if (message.quotas) quotas.show(message.quotas);
    if (message.faults) faults.show(message.faults);
    if (message.connections) connections.show(message.connections);
    if (message.journal) {
      journal.show(message.journal);
      if (message.journal.lines.some((line) => line.kind === "scenario-step")) scenarios.stepped();
    }
    clients.show(message);
    welcome.show(message);
  },
  live() {
    state("live", "live");
    gone.hidden = true;
  },
  gone() {
    state("gone", "disconnected");
    setText(gone, "The broker cannot be reached. This page shows the last known state and reconnects automatically.");
    gone.hidden = false;
  },
  refused(problem) {
    journal.problem(problem);
  },
});

function subscribe() {
  const query = { ...clients.view, ...connections.view, journal: true, ...journal.view };
  stream.subscribe(new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString());
}

function state(name, label) {
  live.dataset.state = name;
  setText(byId("live-words"), label);
}

function cluster(seen) {
  clients.clock.kept = seen.looks_kept;
  journal.cluster(seen);
  const fact = (label, value) => el("span", {}, `${label} `, el("b", {}, value));
  const of = seen.upstream === null ? [] : [fact("in front of", seen.upstream), fact("cluster", seen.cluster_id)];
  if (seen.only_clients.length) of.push(fact("rules only for clients", seen.only_clients.join(", ")));
  if (seen.only_topics.length) of.push(fact("rules only for topics", seen.only_topics.join(", ")));
  byId("facts").replaceChildren(...of, fact("bootstrap", seen.bootstrap), fact("quota profile", seen.profile), fact("version", seen.version));
  const isShadow = seen.quota_mode === "shadow";
  byId("quota-shadow").hidden = !isShadow;
  setText(byId("client-throttle"), isShadow ? "If enforced" : "Throttle time");
  setText(byId("product"), seen.upstream === null ? "sluice" : "sluice proxy");
  document.title = seen.upstream === null ? "sluice" : `sluice proxy of ${seen.cluster_id}`;
}

enableTokenDialog();
subscribe();
