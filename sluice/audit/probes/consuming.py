"""Failing requests of consumers: fetches, offset lookups, and requests of group members (KIP-580).

Some responses to Heartbeat carry the error that makes members send the failing requests repeatedly.
"""

from .incidents import CONSUMER, FIVE_OF_SEVEN, FIVE_OF_SIX, MEMBER, RAMP, broken, cluster, error
from .probe import Begin, Consume, Probe

_SOMETIMES = "1 fail, 3 pass, repeat"

PROBES = (
    Probe(
        name="fetch-error",
        what="Fetch fails with NOT_LEADER_OR_FOLLOWER (6), and later with KAFKA_STORAGE_ERROR (56).",
        workload=Consume(),
        cluster=cluster(
            9,
            broken(0, 4, error("NOT_LEADER_OR_FOLLOWER", "Fetch", FIVE_OF_SEVEN)),
            broken(4, 4, error("KAFKA_STORAGE_ERROR", "Fetch", FIVE_OF_SEVEN)),
        ),
        settings={**CONSUMER, "fetch.max.wait.ms": 200},
    ),
    Probe(
        name="list-offsets-error",
        what="ListOffsets fails with NOT_LEADER_OR_FOLLOWER (6) for consumers that start.",
        workload=Consume(lifetime_ms=3000),
        cluster=cluster(9, broken(0, 8.5, error("NOT_LEADER_OR_FOLLOWER", "ListOffsets", FIVE_OF_SIX))),
        begins=Begin.AT_ONCE,
        settings=CONSUMER,
    ),
    Probe(
        name="coordinator-lookup-error",
        what="Coordinators move, and FindCoordinator fails with COORDINATOR_NOT_AVAILABLE (15).",
        workload=Consume(in_group=True),
        cluster=cluster(
            10,
            broken(
                0,
                9,
                error("NOT_COORDINATOR", "Heartbeat", _SOMETIMES),
                error("COORDINATOR_NOT_AVAILABLE", "FindCoordinator", FIVE_OF_SIX),
            ),
        ),
        settings=MEMBER,
    ),
    Probe(
        name="join-error",
        what="The group rebalances, and JoinGroup, later SyncGroup, fails with COORDINATOR_LOAD_IN_PROGRESS (14).",
        workload=Consume(in_group=True),
        cluster=cluster(
            10,
            broken(0, 9, error("REBALANCE_IN_PROGRESS", "Heartbeat", _SOMETIMES)),
            broken(0, 4.5, error("COORDINATOR_LOAD_IN_PROGRESS", "JoinGroup", FIVE_OF_SEVEN)),
            broken(4.5, 4.5, error("COORDINATOR_LOAD_IN_PROGRESS", "SyncGroup", FIVE_OF_SIX)),
        ),
        settings=MEMBER,
    ),
    Probe(
        name="heartbeat-error",
        what="Heartbeat fails with COORDINATOR_LOAD_IN_PROGRESS (14).",
        workload=Consume(in_group=True),
        cluster=cluster(
            11, broken(0, 10, error("COORDINATOR_LOAD_IN_PROGRESS", "Heartbeat", "5 fail, 1 pass, repeat"))
        ),
        settings={**MEMBER, "heartbeat.interval.ms": 1000},
    ),
    Probe(
        name="commit-error",
        what="OffsetCommit fails with COORDINATOR_LOAD_IN_PROGRESS (14).",
        workload=Consume(in_group=True, commit_every_ms=100),
        cluster=cluster(9, broken(0, 8, error("COORDINATOR_LOAD_IN_PROGRESS", "OffsetCommit", RAMP))),
        settings=MEMBER,
    ),
)
