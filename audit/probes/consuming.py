"""Requests of consumers that fail: fetches, offsets, and what a member of a group asks its coordinator (KIP-580).

Groups come to what fails again and again, since their heartbeats are answered now and then with what makes them do so.
"""

from .incidents import CONSUMER, FIVE_OF_SEVEN, FIVE_OF_SIX, MEMBER, RAMP, broken, cluster, error
from .probe import Begin, Consume, Probe

_SOMETIMES = "1 fail, 3 pass, repeat"

PROBES = (
    Probe(
        name="fetch-error",
        what="Fetch is answered NOT_LEADER_OR_FOLLOWER (6), and then KAFKA_STORAGE_ERROR (56).",
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
        what="ListOffsets is answered NOT_LEADER_OR_FOLLOWER (6), to consumers that look for their beginning.",
        workload=Consume(lifetime_ms=3000),
        cluster=cluster(9, broken(0, 8.5, error("NOT_LEADER_OR_FOLLOWER", "ListOffsets", FIVE_OF_SIX))),
        begins=Begin.AT_ONCE,
        settings=CONSUMER,
    ),
    Probe(
        name="coordinator-lookup-error",
        what="Coordinators move, and FindCoordinator is answered COORDINATOR_NOT_AVAILABLE (15).",
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
        what="The group rebalances, and JoinGroup is answered COORDINATOR_LOAD_IN_PROGRESS (14); then SyncGroup.",
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
        what="Heartbeat is answered COORDINATOR_LOAD_IN_PROGRESS (14).",
        workload=Consume(in_group=True),
        cluster=cluster(
            11, broken(0, 10, error("COORDINATOR_LOAD_IN_PROGRESS", "Heartbeat", "5 fail, 1 pass, repeat"))
        ),
        settings={**MEMBER, "heartbeat.interval.ms": 1000},
    ),
    Probe(
        name="commit-error",
        what="OffsetCommit is answered COORDINATOR_LOAD_IN_PROGRESS (14).",
        workload=Consume(in_group=True, commit_every_ms=100),
        cluster=cluster(9, broken(0, 8, error("COORDINATOR_LOAD_IN_PROGRESS", "OffsetCommit", RAMP))),
        settings=MEMBER,
    ),
)
