"""Failing connections: the backoff before a client reconnects (KIP-144).

In long incidents each new connection fails until the backoff reaches its maximum; in short ones an established
connection is lost and the next one works. The failures differ, because some clients reset the backoff when a connection
is accepted.
"""

from functools import partial

from sluice.broker.faults.actions.connections import RefuseConnections, SilentConnections
from sluice.broker.faults.actions.no_response import Close
from sluice.broker.faults.rule import Rule
from sluice.broker.scenarios.model import Step

from .incidents import NOW_AND_THEN, RECONNECTING, broken, closing, cluster, rule
from .probe import Probe, Produce

_LONG_S, _CALM_S, _SHORT_S = 3.2, 1.0, 3.0


def _long_and_short(*rules: Rule) -> tuple[Step, ...]:
    first, *more = rules
    return (
        broken(0, _LONG_S, first, *more),
        broken(_LONG_S + _CALM_S, _SHORT_S, closing("Produce", NOW_AND_THEN)),
        broken(_LONG_S + _SHORT_S + 2 * _CALM_S, _LONG_S, first, *more),
    )


_SECONDS = 2 * _LONG_S + _SHORT_S + 3 * _CALM_S + 0.6
_RESET = Rule(action=Close(how="rst"), api="Produce")

_probe = partial(Probe, settings=RECONNECTING)

PROBES = (
    _probe(
        name="reconnect-closed",
        what="Connections are accepted and closed before the response to ApiVersions.",
        cluster=cluster(_SECONDS, *_long_and_short(rule(RefuseConnections(how="fin")), closing("Produce"))),
    ),
    _probe(
        name="reconnect-reset",
        what="Connections are accepted and reset (RST) before the response to ApiVersions.",
        cluster=cluster(_SECONDS, *_long_and_short(rule(RefuseConnections(how="rst")), _RESET)),
    ),
    _probe(
        name="reconnect-silent",
        what="Connections are accepted, but no request is answered.",
        cluster=cluster(12, broken(0, 10, rule(SilentConnections()), closing("Produce", "1 fail"))),
        # Some clients apply the timeout of the connection setup to ApiVersions.
        settings={
            **RECONNECTING,
            "request.timeout.ms": 800,
            "socket.connection.setup.timeout.ms": 1000,
            "socket.connection.setup.timeout.max.ms": 1000,
        },
    ),
    _probe(
        name="reconnect-after-versions",
        what="ApiVersions is answered, and the connection is closed at the first Produce request.",
        # Not at Metadata, which clients retry after a separate backoff.
        cluster=cluster(5, broken(0, 4, closing("Produce"))),
    ),
    _probe(
        name="reconnect-lost",
        what="An established connection is occasionally closed; the next one works.",
        cluster=cluster(7, broken(0, 6, closing("Produce", NOW_AND_THEN))),
    ),
    _probe(
        name="reconnect-idle",
        what="The broker closes connections after 1 s of idleness; a record is sent every 6.5 s.",
        workload=Produce(pause_ms=6500),
        cluster=cluster(21, connections_max_idle_ms=1000),
    ),
    _probe(
        name="reconnect-refused",
        what="The port is closed for 4 s; only the client's return is observable.",
        cluster=cluster(7, broken(0, 4, rule(RefuseConnections(how="closed-port")), closing("Produce"))),
    ),
    _probe(
        name="reconnect-two-brokers",
        what="One of two brokers closes all connections; the connection to the other is occasionally lost.",
        workload=Produce(partitions=2),
        cluster=cluster(
            7,
            broken(0, 5, Rule(action=RefuseConnections(how="fin"), broker=1), closing("Produce", broker=1)),
            broken(1.5, 3.5, closing("Produce", NOW_AND_THEN, broker=2)),
            brokers=2,
            partitions=((1,), (2,)),
        ),
    ),
    _probe(
        name="reconnect-constant",
        what="Connections are closed at once; only reconnect.backoff.ms is set, not its maximum.",
        cluster=cluster(4, broken(0, 3, rule(RefuseConnections(how="fin")), closing("Produce"))),
        settings={name: value for name, value in RECONNECTING.items() if name != "reconnect.backoff.max.ms"}
        | {"reconnect.backoff.ms": 200},
    ),
    _probe(
        name="reconnect-base-above-max",
        what="Connections are closed at once; reconnect.backoff.ms is above reconnect.backoff.max.ms.",
        cluster=cluster(4, broken(0, 3, rule(RefuseConnections(how="fin")), closing("Produce"))),
        settings={**RECONNECTING, "reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 200},
    ),
)
