"""What a client asks before and beside its work: metadata, a producer id, an admin's calls (KIP-580)."""

from .incidents import ADMIN, FIVE_OF_SIX, PRODUCER, RAMP, broken, closing, cluster, error
from .probe import Begin, Call, Probe, Produce

PROBES = (
    Probe(
        name="metadata-unknown-topic",
        what="Metadata say that the topic is unknown, to clients that have just begun.",
        workload=Produce(lifetime_ms=4500),
        cluster=cluster(14, broken(0, 13.5, error("UNKNOWN_TOPIC_OR_PARTITION", "Metadata", "7 fail, 1 pass, repeat"))),
        begins=Begin.AT_ONCE,
        settings=PRODUCER,
    ),
    Probe(
        name="metadata-leader-not-available",
        what="A leader denies that it leads, and Metadata say that nobody does (LEADER_NOT_AVAILABLE).",
        workload=Produce(),
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
        what="A leader denies that it leads, and who asks for metadata is disconnected.",
        workload=Produce(),
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
        what="InitProducerId is answered COORDINATOR_LOAD_IN_PROGRESS (14), to clients that have just begun.",
        workload=Produce(lifetime_ms=3000),
        cluster=cluster(9, broken(0, 8.5, error("COORDINATOR_LOAD_IN_PROGRESS", "InitProducerId", FIVE_OF_SIX))),
        begins=Begin.AT_ONCE,
        settings=PRODUCER,
    ),
    Probe(
        name="admin-error",
        what="An admin's call is answered COORDINATOR_LOAD_IN_PROGRESS (14).",
        workload=Call(),
        cluster=cluster(9, broken(0, 8, error("COORDINATOR_LOAD_IN_PROGRESS", "DescribeGroups", RAMP))),
        settings=ADMIN,
    ),
)
