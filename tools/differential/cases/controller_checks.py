"""The order of the controller's checks: topics, partitions, reassignments, configs and access control lists."""

from typing import Any

from sluice.broker.controller.configs.resource import BROKER, BROKER_LOGGER, TOPIC, Operation
from sluice.broker.security.acl.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from tests.support.messages import request
from tools.differential.case import Layout, case
from tools.differential.cases.descriptions import alter, describe, settle
from tools.differential.requests import TIMEOUT_MS, create_topics
from tools.differential.session import Session

CHECKED = Layout(("log.segment.bytes=1073741824", "log.cleanup.policy=compact"), name="checks of the controller")
BROKERS = Layout(brokers=3, name="checks of reassignments")
SECURED = Layout(
    (
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found=true",
        "delete.topic.enable=false",
    ),
    name="access control lists",
)


def topic(name: str, partitions: int = -1, replicas: int = -1, assignments: Any = (), **configs: Any) -> dict[str, Any]:
    """Return a topic to create; config names have underscores for dots."""
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [{"partition_index": index, "broker_ids": brokers} for index, brokers in assignments],
        "configs": [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()],
    }


@case(CHECKED)
def create_topics_that_are_invalid_in_several_ways(session: Session) -> None:
    session.create_topic("checks.a")
    one, gap = [(0, [1])], [(0, [1]), (2, [1])]
    for wanted in (
        topic("checks", 1, 1, one),
        topic("checks", 1, -1, one),
        topic("checks", -1, -2, one),
        topic("checks", 0, 0),
        topic("checks", assignments=[(0, [9]), (0, [1])]),
        topic("checks", assignments=[(0, [1]), (0, [9])]),
        topic("checks", assignments=[(0, [1]), (2, [9])]),
        topic("checks", assignments=[(2, [1]), (1, [1, 1])]),
        topic("checks", assignments=[(0, [1]), (1, [])]),
        topic("checks", assignments=gap),
        topic("checks", assignments=[(-1, [1])]),
        topic("a b", 1, 1, [(0, [1]), (0, [1])], retention_ms=None),
        topic("checks_a", 0, 0, none=None),
        topic("a+b_", 1, 1),
        topic("checks.a", 0, 0, none="x"),
        topic("checks", 0, 0, retention_ms=None, none=None, flush_ms="x"),
        topic("checks", 0, 0, retention_ms="x", none="x"),
        topic("checks", 1, 1, retention_ms="x", segment_ms="x", cleanup_policy="x"),
        topic("checks", 1, 1, min_compaction_lag_ms="5", max_compaction_lag_ms="4", preallocate="x"),
        topic("checks", 1, 1, assignments=gap, flush_ms="x"),
        topic("__cluster_metadata", 0, 0, none=None),
    ):
        session.call(create_topics(wanted, validate_only=True))
    many = topic("checks-b", 5_000, 1)
    for topics in (
        [topic("checks", 10_001, 1), topic("__cluster_metadata", 1, 1), many, many],
        [topic("checks", 5_001, 1), many, many],
        [topic("__cluster_metadata", 10_001, 1), topic("checks", 0, 1)],
        [topic("checks.c", 1, 1), topic("checks_c", 1, 1)],
    ):
        session.call(create_topics(*topics, validate_only=True), unordered=["topics"])


@case(CHECKED)
def create_partitions_that_are_invalid_in_several_ways(session: Session) -> None:
    session.create_topic("checks-partitions", 2)
    for count, assignments in (
        (2, [[9]]),
        (-1, None),
        (1, []),
        (3, []),
        (4, [[1], []]),
        (4, [[1], [1, 1]]),
        (4, [[1], [1, 9]]),
        (3, [[1, 1]]),
        (2_147_483_647, None),
    ):
        _extend(session, ("checks-partitions", count, assignments))
    _extend(session, ("checks-partitions", 10_003, None), ("none", 3, None), ("twice", 3, None), ("twice", 4, None))
    _extend(session, ("checks-partitions", 3, None), ("none", 3, None), ("twice", 3, None), ("twice", 4, None))


def _extend(session: Session, *topics: tuple[str, int, list[list[int]] | None]) -> None:
    wanted = [
        {"name": name, "count": count, "assignments": None if given is None else [{"broker_ids": one} for one in given]}
        for name, count, given in topics
    ]
    extended = request("CreatePartitions", topics=wanted, timeout_ms=TIMEOUT_MS, validate_only=True)
    session.call(extended, unordered=["results"])


@case(BROKERS)
def reassignments_that_are_invalid_in_several_ways(session: Session) -> None:
    session.create_topic("checks-moved", assignments=[[1, 2], [2, 1]])
    for name, index, replicas, may_change in (
        ("none", 9, [9], True),
        ("checks-moved", 9, [9], True),
        ("checks-moved", -1, None, True),
        ("checks-moved", 0, None, False),
        ("checks-moved", 0, [], False),
        ("checks-moved", 0, [1, 1, 9], False),
        ("checks-moved", 0, [9, 3, 3], False),
        ("checks-moved", 0, [1, 1], False),
        ("checks-moved", 0, [1], False),
        ("checks-moved", 0, [1, 2], False),
        ("checks-moved", 0, [2, 1], False),
    ):
        moved = {"name": name, "partitions": [{"partition_index": index, "replicas": replicas}]}
        fields = {"topics": [moved], "timeout_ms": TIMEOUT_MS, "allow_replication_factor_change": may_change}
        session.call(request("AlterPartitionReassignments", **fields))
        for kind in (0, 1, 2):
            elected = [{"topic": name, "partitions": [index]}]
            session.call(request("ElectLeaders", election_type=kind, topic_partitions=elected, timeout_ms=TIMEOUT_MS))


@case(CHECKED)
def lists_of_topics_are_changed_as_text(session: Session) -> None:
    for name, own, operation, value in (
        ("checks-default", None, Operation.APPEND, "delete"),
        ("checks-blank", "delete,compact", Operation.SUBTRACT, " compact"),
        ("checks-comma", "delete", Operation.APPEND, "compact,"),
    ):
        session.create_topic(name, configs={} if own is None else {"cleanup.policy": own})
        alter(session, TOPIC, name, {"cleanup.policy": value}, operation)
        alter(session, TOPIC, name, {"retention.ms": "1000"})
        settle(session, TOPIC, name, "retention.ms", "1000")
        describe(session, TOPIC, name, ["cleanup.policy"])


def acl(name: str, host: str = "*", operation: int = AclOperation.ALL, *, denies: bool = False, **fields: Any) -> Any:
    permission = AclPermissionType.DENY if denies else AclPermissionType.ALLOW
    return {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": "User:ANONYMOUS",
        "host": host,
        "operation": operation,
        "permission_type": permission,
    } | fields


def create_acls(session: Session, *acls: Any) -> None:
    session.call(request("CreateAcls", creations=list(acls)))


_RANGES = (
    *("10.0.0.0/8", "10.1.2.3/8", "010.0.0.1/8", "0.0.0.0/0", "10.0.0.0/33", "10.0.0.300/8", "10.0.0/8", "/", "/8"),
    *("10.0.0.0/", "10.0.0.0/8/8", "10.0.0.0/008", "a/b", "fd00::/8", "::/0", "fd00::/129", "fd00::/x", "fd00::/-1"),
    *("::ffff:1.2.3.4/100", "fd00:/8"),
)


@case(SECURED)
def hosts_of_acls_may_be_ranges(session: Session) -> None:
    create_acls(session, *(acl("checks-ranges", host) for host in _RANGES))
    create_acls(session, acl("checks-ranges", "1/2", principal="a"), acl("", "1/2"))
    for name, host, denies in (
        ("checks-range", "127.0.0.0/8", False),
        ("checks-other-range", "10.0.0.0/8", False),
        ("checks-ipv6-range", "::/0", False),
        ("checks-denied-range", "0.0.0.0/0", True),
    ):
        create_acls(session, acl(name, host, denies=denies), *([acl(name)] if denies else []))
        creating = create_topics(topic(name, 1, 1), validate_only=True)
        session.eventually(creating, 7, lambda _: True, only=("error_code",))


@case(SECURED)
def altering_a_broker_is_authorized_first(session: Session) -> None:
    cluster = ResourceType.CLUSTER
    denial = acl("kafka-cluster", operation=AclOperation.ALTER_CONFIGS, denies=True, resource_type=cluster)
    create_acls(session, acl("kafka-cluster", resource_type=cluster), denial)
    for kind, name in ((BROKER, "1"), (BROKER, ""), (BROKER, "x"), (BROKER, "9"), (BROKER_LOGGER, "9"), (7, "")):
        for configs in ({"message.max.bytes": "x"}, {"num.partitions": "5"}, {"none": "x", "log.retention.ms": None}):
            alter(session, kind, name, configs)
            if kind != BROKER_LOGGER:
                values = [{"name": key, "value": value} for key, value in configs.items()]
                replaced = {"resource_type": kind, "resource_name": name, "configs": values}
                session.call(request("AlterConfigs", resources=[replaced]))
    entity = [{"entity_type": "user", "entity_name": "a"}]
    session.call(request("AlterClientQuotas", entries=[{"entity": entity, "ops": []}]))


@case(SECURED)
def deletion_of_topics_is_disabled(session: Session) -> None:
    for version in (1, 3, 5, 6):
        fields = {"topics": [{"name": "a"}, {"name": "a"}]} if version == 6 else {"topic_names": ["a", "a"]}
        session.call(request("DeleteTopics", **fields), version)
