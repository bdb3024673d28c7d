"""Hosts with many connections that are not used."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# A client has up to five connections to a broker: for bootstrap, data, coordinators and administration.
_LEAST = 50
_IDLE_S = 60.0
_MOST = 0.8  # share of the open connections


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    for place, idle, opened in facts.connections.idle(_IDLE_S):
        if idle >= _LEAST and idle >= _MOST * opened:
            broker, host = place
            yield Evidence(
                f"{idle:,} of {opened:,} open connections from {host} to broker {broker} had no request in the last "
                f"{_IDLE_S:.0f} s"
            )


RULE = Rule(
    id="idle-connections",
    scope=Scope.CLIENT,
    severity=Severity.INFO,
    title="Hosts with many idle connections of one client id",
    why="Each connection costs the broker memory and counts against max.connections.per.ip. Usually the application "
    "creates clients and does not close them, or has one per thread.",
    citation=Citation(
        where="Broker Configs, max.connections.per.ip",
        url="https://kafka.apache.org/documentation/#brokerconfigs_max.connections.per.ip",
        words="New connections from the ip address are dropped if the limit is reached.",
    ),
    remedy=Remedy(
        java="close() unused clients, or share one; connections.max.idle.ms=540000, the default",
        librdkafka="close unused handles, or share one; connections.max.idle.ms",
        aiokafka="stop() unused clients, or share one; connections_max_idle_ms=540000, the default",
        franz_go="Close() unused clients, or share one; kgo.ConnIdleTimeout",
        kafkajs="disconnect() unused clients, or share one",
    ),
    silent="Below 50 idle connections of a host to one broker at the end of the journal.",
    check=_check,
)
