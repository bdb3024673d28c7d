"""Responses with a throttle time: whether the client waits it out (KIP-13, KIP-219).

The broker does not mute the connection: on a muted one, early requests would wait in the kernel, unseen.
"""

from sluice.broker.faults.actions.throttle import Throttle

from .incidents import CONSUMER, MEMBER, PRODUCER, broken, cluster, rule
from .probe import Consume, Probe

_THROTTLED = Throttle(throttle_time_ms=400, mute=False)
_SOMETIMES = "1 fail, 3 pass, repeat"

PROBES = (
    Probe(
        name="throttle-produce",
        what="Responses to Produce have a throttle time of 400 ms.",
        cluster=cluster(7, broken(0, 6, rule(_THROTTLED, "Produce", _SOMETIMES))),
        settings=PRODUCER,
    ),
    Probe(
        name="throttle-fetch",
        what="Responses to Fetch have a throttle time of 400 ms.",
        workload=Consume(),
        cluster=cluster(7, broken(0, 6, rule(_THROTTLED, "Fetch", _SOMETIMES))),
        settings={**CONSUMER, "fetch.max.wait.ms": 50},
    ),
    Probe(
        name="throttle-other",
        what="Responses to a group member's OffsetCommit and Heartbeat have a throttle time of 400 ms.",
        workload=Consume(in_group=True, commit_every_ms=50),
        cluster=cluster(7, broken(0, 6, rule(_THROTTLED, ["OffsetCommit", "Heartbeat"], _SOMETIMES))),
        settings=MEMBER,
    ),
    Probe(
        name="throttle-long",
        what="Responses to Produce have a throttle time longer than request.timeout.ms.",
        cluster=cluster(
            9, broken(0, 8, rule(Throttle(throttle_time_ms=1500, mute=False), "Produce", "1 fail, 5 pass, repeat"))
        ),
        settings={**PRODUCER, "request.timeout.ms": 800},
    ),
)
