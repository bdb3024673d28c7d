"""Answers that tell a throttle time: whether the client waits for as long (KIP-13, KIP-219).

But in `throttle-long` the broker does not hold who comes too early: it only tells.
"""

from sluice.broker.faults.actions.throttle import Throttle

from .incidents import CONSUMER, MEMBER, PRODUCER, broken, cluster, rule
from .probe import Consume, Probe, Produce

_THROTTLED_MS = 400
_SOMETIMES = "1 fail, 3 pass, repeat"

PROBES = (
    Probe(
        name="throttle-produce",
        what="Answers to Produce tell a throttle time.",
        workload=Produce(),
        cluster=cluster(
            7, broken(0, 6, rule(Throttle(throttle_time_ms=_THROTTLED_MS, mute=False), "Produce", _SOMETIMES))
        ),
        settings=PRODUCER,
    ),
    Probe(
        name="throttle-fetch",
        what="Answers to Fetch tell a throttle time.",
        workload=Consume(),
        cluster=cluster(
            7, broken(0, 6, rule(Throttle(throttle_time_ms=_THROTTLED_MS, mute=False), "Fetch", _SOMETIMES))
        ),
        settings={**CONSUMER, "fetch.max.wait.ms": 50},
    ),
    Probe(
        name="throttle-other",
        what="Answers to a group member's commits and heartbeats tell a throttle time.",
        workload=Consume(in_group=True, commit_every_ms=50),
        cluster=cluster(
            7,
            broken(
                0,
                6,
                rule(Throttle(throttle_time_ms=_THROTTLED_MS, mute=False), ["OffsetCommit", "Heartbeat"], _SOMETIMES),
            ),
        ),
        settings=MEMBER,
    ),
    Probe(
        name="throttle-long",
        what="The broker tells a throttle time longer than request.timeout.ms, and reads nothing for so long.",
        workload=Produce(),
        cluster=cluster(9, broken(0, 8, rule(Throttle(throttle_time_ms=1500), "Produce", "1 fail, 5 pass, repeat"))),
        settings={**PRODUCER, "request.timeout.ms": 800},
    ),
)
