// Puts the page together: one stream in, and each panel shows its part of it.

import { askWhenWanted } from "./token.js";
import { Brokers } from "./brokers.js";
import { Clients } from "./clients.js";
import { byId, el, setText } from "./dom.js";
import { Journal } from "./journal.js";
import { Stream } from "./stream.js";
import { Welcome } from "./welcome.js";

const brokers = new Brokers();
const clients = new Clients(ask);
const journal = new Journal(ask);
const welcome = new Welcome();
const live = byId("live");
const gone = byId("gone");

const stream = new Stream({
  begin() {
    clients.begin();
    journal.begin();
  },
  message(message) {
    const offset = message.at_ms - Date.now();
    if (message.cluster) cluster(message.cluster);
    if (message.brokers) brokers.show(message.brokers);
    if (message.journal) journal.show(message.journal);
    clients.show(message, offset);
    welcome.show(message);
  },
  live() {
    state("live", "live");
    gone.hidden = true;
  },
  gone() {
    state("gone", "broker gone");
    setText(gone, "The broker is gone, or cannot be reached. What is shown is how it was; this page tries again by itself.");
    gone.hidden = false;
  },
  refused(problem) {
    journal.problem(problem);
  },
});

function ask() {
  const query = { ...clients.view, journal: true, ...journal.view };
  stream.ask(new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "")).toString());
}

function state(name, said) {
  live.dataset.state = name;
  setText(byId("live-words"), said);
}

function cluster(seen) {
  clients.clock.kept = seen.looks_kept;
  journal.cluster(seen);
  const fact = (label, value) => el("span", {}, `${label} `, el("b", {}, value));
  byId("facts").replaceChildren(fact("bootstrap", seen.bootstrap), fact("throttles as", seen.profile), fact("version", seen.version));
}

askWhenWanted();
ask();
