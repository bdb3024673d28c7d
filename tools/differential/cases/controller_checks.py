"""Topics, and the order of the controller's checks: partitions, reassignments, configs and access control lists."""

from typing import Any

from sluice.broker.controller.configs.resource import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, Operation
from sluice.broker.security.acl.acl import AclOperation, AclPermissionType, PatternType, ResourceType
from tests.support.messages import request
from tests.support.wire import error_codes
from tools.differential.case import Layout, case
from tools.differential.cases.descriptions import alter, describe, settle
from tools.differential.requests import TIMEOUT_MS, create_topics, metadata
from tools.differential.session import Session

# sluice's default in memory is another one.
_SEGMENTS = "log.segment.bytes=1073741824"
CHECKED = Layout((_SEGMENTS, "log.cleanup.policy=compact"), name="checks of the controller")
BROKERS = Layout(brokers=3, name="checks of reassignments")
_AUTHORIZER = (
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found=true",
)
SECURED = Layout((*_AUTHORIZER, "delete.topic.enable=false"), name="access control lists")
DENIED = Layout((*_AUTHORIZER, _SEGMENTS), name="denied resources")


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


@case(CHECKED)
def configs_that_are_invalid_in_several_ways(session: Session) -> None:
    for kind, name, configs in (
        (BROKER, "1", {"num.io.threads": "x", "log.retention.ms": "x", "none": "x"}),
        (BROKER, "1", {"log.segment.bytes": "x", "num.partitions": "1", "broker.id": "3"}),
        (BROKER, "1", {"ssl.keystore.type": "x", "num.partitions": "1"}),
        (BROKER, "", {"listeners": "x", "ssl.keystore.type": "x"}),
        (BROKER, "", {"cordoned.log.dirs": "", "log.flush.interval.ms": "x"}),
        (BROKER, "", {"listener.name.a.max.connections": "-1", "listeners": "x"}),
        (GROUP, "a", {"none": "x", "share.session.timeout.ms": "x"}),
        (GROUP, "a", {"share.session.timeout.ms": "x", "consumer.session.timeout.ms": "x"}),
        (GROUP, "a", {"consumer.session.timeout.ms": "1", "consumer.heartbeat.interval.ms": "1"}),
        (GROUP, "a", {"share.session.timeout.ms": "1", "consumer.heartbeat.interval.ms": "1"}),
        (GROUP, "a", {"consumer.session.timeout.ms": "45000", "consumer.heartbeat.interval.ms": "45000"}),
        (GROUP, "a", {"errors.deadletterqueue.topic.name": "__a", "streams.assignor.name": "x"}),
        (GROUP, "a", {"errors.deadletterqueue.topic.name": "__a", "share.heartbeat.interval.ms": "1"}),
        (GROUP, "a", {"streams.rack.aware.assignment.tags": "a,a", "none": "x"}),
        (CLIENT_METRICS, "a", {"none": "x", "interval.ms": "x"}),
        (CLIENT_METRICS, "a", {"match": "x", "interval.ms": "1", "metrics": ","}),
        (CLIENT_METRICS, "a", {"match": "x", "interval.ms": "x"}),
        (CLIENT_METRICS, "", {"none": "x" * 32_768}),
        (TOPIC, "none", {"none": "x"}),
        (TOPIC, "none", {"retention.ms": "x" * 32_768, "none": "x"}),
        (TOPIC, "a b", {"none": "x"}),
        (TOPIC, "", {"retention.ms": "x" * 32_768}),
    ):
        alter(session, kind, name, configs)
        values = [{"name": key, "value": value} for key, value in configs.items()]
        replaced = {"resource_type": kind, "resource_name": name, "configs": values}
        session.call(request("AlterConfigs", resources=[replaced], validate_only=True))


@case(CHECKED)
def quotas_and_credentials_that_are_invalid_in_several_ways(session: Session) -> None:
    for entity, ops in (
        ({}, {"none": 1.0}),
        ({"x": "", "user": ""}, {"none": 1.0}),
        ({"user": ""}, {"none": 1.0}),
        ({"ip": "300.1.1.1", "user": "a"}, {}),
        ({"ip": "127.0.0.1"}, {"producer_byte_rate": 1.0}),
        ({"ip": "127.0.0.1"}, {"connection_creation_rate": 2.0**31}),
        ({"ip": "127.0.0.1"}, {"connection_creation_rate": 1.5}),
        ({"ip": None}, {"connection_creation_rate": None}),
        ({"user": "a"}, {"none": None, "producer_byte_rate": -1.0}),
        ({"user": "a"}, {"producer_byte_rate": 0.0}),
        ({"user": "a"}, {"producer_byte_rate": 0.5}),
        ({"user": "a"}, {"producer_byte_rate": 1.0000001}),
        ({"user": "a"}, {"producer_byte_rate": 2.0**63}),
        ({"user": "a"}, {"producer_byte_rate": 2.0**64}),
        ({"user": "a"}, {"request_percentage": float("nan")}),
        ({"user": "a"}, {"request_percentage": float("inf")}),
        ({"user": "a", "client-id": None}, {"controller_mutation_rate": 0.001}),
    ):
        entry = {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
            "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops.items()],
        }
        session.call(request("AlterClientQuotas", entries=[entry], validate_only=True), unordered=["entity"])
    for components in (
        [("", 0, "a")],
        [("x", 9, "a")],
        [("user", 9, "a")],
        [("user", 0, None), ("user", 1, None)],
        [("user", 1, "a"), ("ip", 1, None)],
        [("user", 2, None), ("ip", 1, None)],
        [("ip", 1, None), ("client-id", 2, "")],
    ):
        parts = [{"entity_type": kind, "match_type": match, "match": name} for kind, match, name in components]
        session.call(request("DescribeClientQuotas", components=parts))
    good = {"name": "a", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p" * 32}
    for deletions, upsertions in (
        ([], [{"name": "", "mechanism": 0, "iterations": 1}]),
        ([], [good | {"mechanism": 3, "iterations": 1}]),
        ([], [good | {"iterations": 4095}, good]),
        ([], [good | {"iterations": 16385}, good | {"name": "b", "iterations": 16384}]),
        ([{"name": "b", "mechanism": 2}], [good | {"name": "b"}]),
        ([{"name": "b", "mechanism": 1}, {"name": "b", "mechanism": 2}], []),
        ([{"name": "c", "mechanism": -1}, {"name": "c", "mechanism": 1}], [good]),
        ([{"name": "b", "mechanism": 1}, {"name": "a", "mechanism": 1}], []),
    ):
        changed = request("AlterUserScramCredentials", deletions=deletions, upsertions=upsertions)
        session.call(changed, unordered=["results"])
    described = request("DescribeUserScramCredentials", users=[{"name": name} for name in ("a", "", "a")])
    session.call(described, unordered=["results"])


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
def acls_are_found_by_filters(session: Session) -> None:
    prefixed: dict[str, Any] = {"resource_pattern_type": PatternType.PREFIXED}
    acls = [
        acl("filter"),
        acl("filter", "10.0.0.0/8", AclOperation.READ),
        acl("filter", principal="User:"),
        acl("filter", principal="User:*", denies=True),
        acl("filt", **prefixed),
        acl("filter", operation=AclOperation.DESCRIBE, **prefixed),
        acl("*", **prefixed),
        acl("*"),
        acl("filter", resource_type=ResourceType.GROUP),
        acl("filter", resource_type=ResourceType.USER, operation=AclOperation.CREATE_TOKENS),
        acl("filter", operation=AclOperation.IDEMPOTENT_WRITE),
    ]
    create_acls(session, *acls, acls[0])
    fields = ("resource_type_filter", "resource_name_filter", "pattern_type_filter", "principal_filter", "host_filter")
    filters = [
        dict(zip((*fields, "operation", "permission_type"), values, strict=True))
        for values in (
            (2, "filter", 2, None, None, 1, 1),
            (2, "filter", 3, None, None, 1, 1),
            (2, "filter", 1, None, None, 1, 1),
            (2, "filtered", 2, None, None, 1, 1),
            (2, "*", 2, None, None, 1, 1),
            (2, "*", 3, None, None, 1, 1),
            (2, "", 2, None, None, 1, 1),
            (1, "filter", 4, None, None, 1, 1),
            (1, "filter", 3, "User:", None, 1, 1),
            (2, None, 2, None, "10.0.0.1", 1, 1),
            (2, None, 4, "User:ANONYMOUS", None, 8, 3),
            (2, "filter", 3, "User:*", "*", 2, 1),
            (2, "filter", 3, None, "10.0.0.0/8", 1, 1),
            (9, "filter", 3, None, None, 1, 1),
            (2, "filter", 9, None, None, 99, 1),
            (2, "filter", 3, None, None, 99, 1),
            (2, "filter", 3, None, None, 1, 9),
        )
    ]  # fmt: skip
    for each in filters:
        session.call(request("DescribeAcls", **each), unordered=["*"])
    deleted = [filters[-1], *filters[4:7], filters[4], filters[2]]
    session.call(request("DeleteAcls", filters=deleted), unordered=["matching_acls"])
    session.call(request("DescribeAcls", **filters[7]), unordered=["*"])


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


_KNOWN, _DENIED, _SEEN = "checks-known", "checks-denied", "checks-seen"
# The operation that is allowed on some names.
_ALLOWED = {_SEEN: "DESCRIBE", "checks-unknown": "DESCRIBE", "__consumer_offsets": "DESCRIBE", "checks-new": "CREATE"}
_NAMES = [_DENIED, "none", _KNOWN, *_ALLOWED]
_GROUPS = ("checks-denied", "checks-group")
_NO_CREATION = {"allow_auto_topic_creation": False}
_TIMED = {"CreatePartitions", "CreateTopics", "DeleteTopics"}
# Requests about names, of which some are denied.
_OF_NAMES: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("Metadata", 12, {
        "topics": [{"name": name} for name in _NAMES], "include_topic_authorized_operations": True, **_NO_CREATION,
    }),
    ("Metadata", 9, {"topics": [{"name": name} for name in ["x", *_NAMES]], **_NO_CREATION}),
    ("Metadata", 9, {"topics": [{"name": name} for name in _ALLOWED], "allow_auto_topic_creation": True}),
    ("Metadata", 8, {"topics": [], "include_cluster_authorized_operations": True}),
    ("DescribeTopicPartitions", 0, {"topics": [{"name": name} for name in _NAMES]}),
    ("CreateTopics", 7, {"topics": [topic(name, 1, 1) for name in _NAMES], "validate_only": True}),
    ("CreatePartitions", 3, {"topics": [{"name": name, "count": 2, "assignments": None} for name in _NAMES]}),
    ("DescribeConfigs", 4, {"resources": [
        *({"resource_type": 2, "resource_name": name, "configuration_keys": ["retention.ms"]} for name in _NAMES),
        *({"resource_type": 32, "resource_name": name, "configuration_keys": ["none"]} for name in _GROUPS),
        {"resource_type": 4, "resource_name": "9"}, {"resource_type": 16, "resource_name": ""},
        {"resource_type": 8, "resource_name": "1"},
    ]}),
    *(
        (api, version, {"resources": [
            {"resource_type": kind, "resource_name": name, "configs": [{"name": "none", "value": "x"}]}
            for kind, names in ((2, _NAMES), (32, _GROUPS), (16, ("a", "")))
            for name in names
        ]})
        for api, version in (("AlterConfigs", 2), ("IncrementalAlterConfigs", 1))
    ),
    ("DescribeUserScramCredentials", 0, {"users": [{"name": "a"}, {"name": "b"}]}),
    ("DescribeClientQuotas", 1, {"components": [{"entity_type": "x"}]}),
    ("AlterClientQuotas", 1, {"entries": [{"entity": [{"entity_type": "user", "entity_name": "a"}], "ops": []}]}),
    ("DescribeLogDirs", 5, {"topics": None}),
    ("AlterReplicaLogDirs", 2, {"dirs": [{"path": "/x", "topics": [{"name": _KNOWN, "partitions": [1, 0]}]}]}),
    ("ListConfigResources", 1, {"resource_types": [99]}),
    ("DescribeCluster", 2, {"include_cluster_authorized_operations": True}),
    ("DescribeProducers", 0, {"topics": [{"name": name, "partition_indexes": [0, 7]} for name in _NAMES]}),
    ("OffsetForLeaderEpoch", 4, {"replica_id": -1, "topics": [
        {"topic": name, "partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}
        for name in _NAMES
    ]}),
    ("ListGroups", 5, {"states_filter": [], "types_filter": []}),
    ("DeleteTopics", 6, {"topics": [{"name": name} for name in _NAMES if name != _KNOWN]}),
)  # fmt: skip
# Kafka's message about the cluster has the whole request.
_OF_CLUSTER: tuple[tuple[str, dict[str, Any]], ...] = (
    ("AlterUserScramCredentials", {"deletions": [{"name": "b", "mechanism": 1}, {"name": "a", "mechanism": 9}]}),
    ("DescribeAcls", {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}),
    ("CreateAcls", {"creations": [acl("x", "1/2"), acl("")]}),
    ("UpdateFeatures", {"feature_updates": [{"feature": "a", "max_version_level": 1, "upgrade_type": 9}]}),
    ("ElectLeaders", {"election_type": 9, "topic_partitions": [{"topic": _KNOWN, "partitions": [0]}]}),
    ("AlterPartitionReassignments", {"topics": [{"name": "none", "partitions": [{"partition_index": 0}]}]}),
    ("ListPartitionReassignments", {"topics": [{"name": "none", "partition_indexes": [0]}]}),
    ("UnregisterBroker", {"broker_id": 99}),
    ("DescribeQuorum", {"topics": [{"topic_name": "none", "partitions": [{"partition_index": 0}]}]}),
    ("WriteTxnMarkers", {"markers": []}),
)


@case(DENIED)
def requests_about_what_is_denied(session: Session) -> None:
    ids = [session.create_topic(name) for name in (_KNOWN, _DENIED, _SEEN)]
    operations = ("ALTER", "DESCRIBE", "CREATE", "DELETE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
    cluster = [
        acl("kafka-cluster", operation=AclOperation[name], denies=True, resource_type=ResourceType.CLUSTER)
        for name in operations
    ]
    names = [
        *(acl(_DENIED, denies=True, resource_type=kind) for kind in (ResourceType.TOPIC, ResourceType.GROUP)),
        *(acl(name, operation=AclOperation[allows]) for name, allows in _ALLOWED.items()),
    ]
    allowed = acl("kafka-cluster", operation=AclOperation.ALL, resource_type=ResourceType.CLUSTER)
    create_acls(session, *names, allowed, *cluster)
    for api, version, fields in _OF_NAMES:
        timed = {"timeout_ms": TIMEOUT_MS} if api in _TIMED else {}
        session.call(request(api, **fields, **timed), version, unordered=["topics", "results", "responses", "brokers"])
    by_id = [{"name": None, "topic_id": topic_id} for topic_id in ids]
    metadata = request("Metadata", topics=by_id, include_topic_authorized_operations=True)
    session.call(metadata, 12, unordered=["topics"])
    session.call(request("DeleteTopics", topics=by_id, timeout_ms=TIMEOUT_MS), 6, unordered=["responses"])
    for api, fields in _OF_CLUSTER:
        session.note(api, error_codes(session.request(request(api, **fields))))


@case()
def describe_a_topic(session: Session) -> None:
    session.create_topic("topics-created", 2)
    session.call(metadata("topics-created", auto_create=True))


@case()
def create_a_topic_that_exists(session: Session) -> None:
    session.create_topic("topics-twice")
    session.call(create_topics({"name": "topics-twice", "num_partitions": 1, "replication_factor": 1}))
