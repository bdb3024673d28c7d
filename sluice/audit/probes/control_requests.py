"""Failing requests besides records: metadata, producer ids, admin calls (KIP-580)."""

from .incidents import ADMIN, FIVE_OF_SIX, PRODUCER, RAMP, broken, closing, cluster, error
from .probe import Begin, Call, Probe, Produce

PROBES = (
    Probe(
        name="metadata-unknown-topic",
        what="Metadata reports the topic as unknown to clients that start.",
        workload=Produce(lifetime_ms=4500),
        cluster=cluster(14, broken(0, 13.5, error("UNKNOWN_TOPIC_OR_PARTITION", "Metadata", "7 fail, 1 pass, repeat"))),
        begins=Begin.AT_ONCE,
        settings=PRODUCER,
    ),
    Probe(
        name="metadata-leader-not-available",
        what="Produce reports a moved leader, and Metadata fails with LEADER_NOT_AVAILABLE (5).",
        cluster=cluster(
            9,
            broken(
                0,
                8,
                error("NOT_LEADER_OR_FOLLOWER", "Produce", "1 fail, 3 pass, repeat"),
                error("LEADER_NOT_AVAILABLE", "Metadata", FIVE_OF_SIX),
            ),
        ),
        settings=PRODUCER,
    ),
    Probe(
        name="metadata-disconnect",
        what="Produce reports a moved leader, and the broker closes the connections of Metadata requests.",
        cluster=cluster(
            9,
            broken(
                0,
                8,
                error("NOT_LEADER_OR_FOLLOWER", "Produce", "1 fail, 3 pass, repeat"),
                closing("Metadata", FIVE_OF_SIX),
            ),
        ),
        settings=PRODUCER,
    ),
    Probe(
        name="init-producer-id-error",
        what="InitProducerId fails with COORDINATOR_LOAD_IN_PROGRESS (14) for clients that start.",
        workload=Produce(lifetime_ms=3000),
        cluster=cluster(9, broken(0, 8.5, error("COORDINATOR_LOAD_IN_PROGRESS", "InitProducerId", FIVE_OF_SIX))),
        begins=Begin.AT_ONCE,
        settings=PRODUCER,
    ),
    Probe(
        name="admin-error",
        what="An admin call fails with COORDINATOR_LOAD_IN_PROGRESS (14).",
        workload=Call(),
        cluster=cluster(9, broken(0, 8, error("COORDINATOR_LOAD_IN_PROGRESS", "DescribeGroups", RAMP))),
        settings=ADMIN,
    ),
)
