"""Configs: what DescribeConfigs answers for each resource, and which values an alteration accepts.

The words of documentation are sluice's own, so only its presence is compared.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sluice.broker.controller.configs.group_configs import GroupConfigs
from sluice.broker.controller.configs.resource import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, Operation
from sluice.config.config_releases import has_config
from sluice.config.kafka_properties import KAFKA_PROPERTIES
from sluice.config.property_table import PROPERTIES, TOPIC_PROPERTIES
from sluice.protocol.message import Message
from tests.support.messages import request
from tools.differential.case import Layout, case
from tools.differential.requests import GROUP as OF_GROUPS
from tools.differential.requests import TRANSACTION as OF_TRANSACTIONS
from tools.differential.requests import coordinator, create_topics
from tools.differential.session import Session

# sluice's default in memory is another one.
_SEGMENTS = ("log.segment.bytes=1073741824",)
DESCRIBED, ALTERED = Layout(_SEGMENTS), Layout(_SEGMENTS, name="altered configs")
# Text that at least one type or range rejects.
VALUES = ("", "abc", "-3", "0", "1", "9999999999", "a,a")
# The test itself sets these: addresses, folders, the controller and segments. Their types are compared.
_OF_THE_TEST = frozenset({
    "advertised.listeners", "controller.listener.names", "controller.quorum.voters", "listener.security.protocol.map",
    "listeners", "log.dirs", "log.segment.bytes", "process.roles", "segment.bytes",
})  # fmt: skip
_OWN = ("sluice.", "quota.profile")
_DEFAULTS = {
    "*.queued.max.request.bytes.*": "sluice bounds the memory of requests by default",
    "*.sasl.enabled.mechanisms.*": "sluice has no Kerberos, Kafka's default",
    "*.ssl.*store.type.*": "sluice supports PEM only",
}
_VALUES = {
    "* config.providers.a,a": "Kafka does not validate it here",
    "* log.message.downconversion.enable.*": "Kafka 4.4 does not have it; sluice validates it in each release",
    "* log.cleaner.io.buffer.load.factor.-3": "Kafka's cleaner would fail with it",
    "* log.retention.ms.-3": "Kafka accepts any negative number, sluice -1",
    "* ssl.enabled.protocols.*": "sluice has TLS 1.2 and 1.3",
    "* *.class.*": "sluice has no Java classes, and accepts any name",
    "* metric.reporters.*": "as above",
}


def describe(
    session: Session, kind: int, name: str, keys: list[str] | None = None, version: int = 4, *, words: bool = True
) -> None:
    """Compare the configs of a resource by their names; Kafka's order is that of a hash map."""
    described = _description(kind, name, keys, include_synonyms=words, include_documentation=words)
    (result,) = session.request(described, version).results
    found = {
        one.name: config(one)
        for one in sorted(result.configs, key=lambda one: one.name)
        if not one.name.startswith(_OWN)
    }
    session.note(f"configs of {kind} {name!r}", {"error": [result.error_code, result.error_message], **found})


def _description(kind: int, name: str, keys: list[str] | None, **fields: bool) -> Message:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return request("DescribeConfigs", resources=[resource], **fields)


def config(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": result.config_type, "is_documented": bool(result.documentation)}
    found |= {name: True for name in ("read_only", "is_sensitive") if getattr(result, name)}
    if result.name not in _OF_THE_TEST:
        found |= {"value": result.value, "source": result.config_source}
        found["synonyms"] = [[one.name, one.value, one.source] for one in result.synonyms]
    return found


def settle(session: Session, kind: int, name: str, key: str, value: str) -> None:
    """Wait until a broker has applied an alteration."""
    session.wait_for(_description(kind, name, [key]), lambda response: response.results[0].configs[0].value == value)


def alter(
    session: Session, kind: int, name: str, configs: Mapping[str, str | None], operation: int = Operation.SET
) -> None:
    """Alter a resource, and compare the response."""
    session.call(_alteration(kind, name, configs, operation))


def _alteration(
    kind: int, name: str, configs: Mapping[str, str | None], operation: int, *, validate_only: bool = False
) -> Message:
    changes = [{"name": key, "config_operation": operation, "value": value} for key, value in configs.items()]
    resource = {"resource_type": kind, "resource_name": name, "configs": changes}
    return request("IncrementalAlterConfigs", resources=[resource], validate_only=validate_only)


def _error_of(response: Any) -> list[Any] | None:
    (result,) = response.responses if hasattr(response, "responses") else response.topics
    return [result.error_code, result.error_message] if result.error_code else None


def _values(
    session: Session, kind: int, name: str, keys: Iterable[str], values: Iterable[str], operation: int = Operation.SET
) -> None:
    """Compare which values are accepted for each of the keys, without an alteration."""
    for key in sorted(keys):
        requests = {value: _alteration(kind, name, {key: value}, operation, validate_only=True) for value in values}
        session.note(key, {value: _error_of(session.request(each)) for value, each in requests.items()})


@case(DESCRIBED)
def describe_a_topic(session: Session) -> None:
    session.create_topic("descriptions-plain")
    describe(session, TOPIC, "descriptions-plain")


@case(DESCRIBED)
def describe_a_topic_with_configs(session: Session) -> None:
    configs = {"retention.ms": "1000", "cleanup.policy": "compact,delete", "internal.segment.bytes": "100000"}
    session.create_topic("descriptions-own", configs=configs)
    describe(session, TOPIC, "descriptions-own")


@case(DESCRIBED, explained=_DEFAULTS)
def describe_a_broker(session: Session) -> None:
    describe(session, BROKER, "1")


@case(DESCRIBED)
def describe_other_resources(session: Session) -> None:
    describe(session, BROKER, "")
    describe(session, GROUP, "descriptions-none")
    describe(session, CLIENT_METRICS, "descriptions-none")


@case(DESCRIBED)
def describe_by_keys(session: Session) -> None:
    session.create_topic("descriptions-keys")
    for keys in ([], ["retention.ms"], ["none"], ["retention.ms", "none", "retention.ms"]):
        for version in range(1, 5):
            describe(session, TOPIC, "descriptions-keys", keys, version, words=version > 3)
    describe(session, BROKER, "1", ["log.retention.ms", "log.retention.hours", "none", "broker.id"])
    describe(session, GROUP, "g", ["consumer.session.timeout.ms"])
    describe(session, CLIENT_METRICS, "c", ["interval.ms"])


@case(DESCRIBED)
def describe_what_is_missing(session: Session) -> None:
    resources = [(kind, name) for kind in (0, 1, 2, 3, 4, 8, 16, 32, 64) for name in ("", "none", "7", "a b", "-1")]
    for kind, name in resources:
        session.call(_description(kind, name, ["none"]))


@case(DESCRIBED)
def alter_what_is_missing(session: Session) -> None:
    for kind in (0, 1, 2, 3, 4, 8, 16, 32, 64):
        for name in ("", "none", "1", "7", "a b", "-1"):
            for operation in (*Operation, 9, -1):
                alter(session, kind, name, {"none": "x"}, operation)
            configs = [{"name": "none", "value": "x"}]
            replaced = {"resource_type": kind, "resource_name": name, "configs": configs}
            session.call(request("AlterConfigs", resources=[replaced]))


@case(DESCRIBED)
def values_of_topic_configs(session: Session) -> None:
    session.create_topic("descriptions-values")
    _values(session, TOPIC, "descriptions-values", sorted([*TOPIC_PROPERTIES, "none"]), VALUES)


def _topic(name: str, key: str, value: str) -> dict[str, Any]:
    """Return a new topic with a config."""
    return {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": [{"name": key, "value": value}]}


@case(DESCRIBED)
def values_of_configs_of_new_topics(session: Session) -> None:
    for key in sorted([*TOPIC_PROPERTIES, "none"]):
        found = {}
        for value in ("abc", "1"):
            created = create_topics(_topic("descriptions-new", key, value), validate_only=True)
            found[value] = _error_of(session.request(created))
        session.note(key, found)


@case(DESCRIBED)
def configs_of_brokers_that_cannot_be_altered(session: Session) -> None:
    for node in ("1", ""):
        found = set()
        for key in (*KAFKA_PROPERTIES, *PROPERTIES, "none"):
            if has_config("kafka-4.4", "broker", key) and not key.startswith(_OWN):
                changed = _alteration(BROKER, node, {key: "1"}, Operation.SET, validate_only=True)
                error = _error_of(session.request(changed))
                if error is not None and error[1].startswith("Cannot update these configs dynamically"):
                    found.add(key)
        session.note(f"of {node!r}", sorted(found))


@case(DESCRIBED, explained=_VALUES)
def values_of_broker_configs(session: Session) -> None:
    dynamic = {name for name, known in KAFKA_PROPERTIES.items() if known.mode != "read-only"}
    for key in sorted(dynamic - {"listener.security.protocol.map"}):  # the test's ports are in its message
        _values(session, BROKER, "1", [key], VALUES)
        _values(session, BROKER, "", [key], ["", "1"])


@case(DESCRIBED)
def values_of_group_configs(session: Session) -> None:
    _values(session, GROUP, "descriptions", [*GroupConfigs.rows, "none"], [*VALUES, "45000", "earliest", "sticky"])


@case(DESCRIBED)
def values_of_client_metrics(session: Session) -> None:
    match = ["client_id=a", "client_id=(", "id=a", "client_id", "client_id=a,client_id=b", "client_id=\\C"]
    _values(session, CLIENT_METRICS, "descriptions", ["metrics", "interval.ms", "match", "none"], [*VALUES, *match])


@case(DESCRIBED)
def levels_of_loggers(session: Session) -> None:
    _values(session, BROKER_LOGGER, "1", ["root", "none"], ["INFO", "info", "", "abc", "OFF", "ALL"])


@case(DESCRIBED)
def lists_are_changed(session: Session) -> None:
    session.create_topic("descriptions-lists")
    resources = (
        (TOPIC, "descriptions-lists", sorted(TOPIC_PROPERTIES)),
        (GROUP, "descriptions-lists", GroupConfigs.rows),
        (CLIENT_METRICS, "descriptions-lists", ("metrics", "interval.ms", "match")),
        (BROKER, "1", ("config.providers", "log.cleanup.policy", "num.io.threads", "none")),
        (BROKER, "", ("config.providers", "log.cleanup.policy", "num.io.threads", "none")),
    )
    for kind, name, keys in resources:
        for operation in (Operation.APPEND, Operation.SUBTRACT):
            _values(session, kind, name, keys, ("compact", "delete", ""), operation)


@case(DESCRIBED)
def create_a_topic(session: Session) -> None:
    for validate_only in (True, False):
        created = create_topics(_topic("descriptions-created", "flush.ms", "100"), validate_only=validate_only)
        session.call(created)


@case(ALTERED, explained=_DEFAULTS)
def describe_altered_resources(session: Session) -> None:
    session.create_topic("altered", configs={"retention.ms": "1000"})
    alter(session, BROKER, "", {"log.retention.ms": "200000", "log.flush.interval.ms": "5", "num.io.threads": "9"})
    alter(session, BROKER, "", {"message.max.bytes": "100000", "compression.type": "gzip", "max.connections": "900"})
    alter(session, BROKER, "1", {"log.retention.ms": "300000", "log.segment.bytes": "2000000", "none": "x"})
    alter(session, BROKER, "", {"min.insync.replicas": "2", "log.preallocate": "true", "group.none": "x"})
    alter(session, TOPIC, "altered", {"preallocate": "false", "min.insync.replicas": "1", "flush.messages": "7"})
    alter(session, GROUP, "altered", {"consumer.session.timeout.ms": "50000", "share.auto.offset.reset": "earliest"})
    alter(session, CLIENT_METRICS, "altered", {"metrics": "a,b", "match": "client_id=c"})
    alter(session, TOPIC, "altered", {"cleanup.policy": "compact"}, Operation.APPEND)
    settle(session, TOPIC, "altered", "cleanup.policy", "delete,compact")
    described = (TOPIC, "altered"), (BROKER, "1"), (BROKER, ""), (GROUP, "altered"), (CLIENT_METRICS, "altered")
    for kind, name in described:
        describe(session, kind, name)


# Broker properties that limit responses, or become configs of the coordinators' topics.
LIMITED = Layout(
    (
        "log.segment.bytes=1073741824",
        "max.request.partition.size.limit=2",
        "transaction.state.log.min.isr=3",
        "transaction.state.log.segment.bytes=2097152",
        "offsets.topic.segment.bytes=3145728",
    )
)


@case(LIMITED)
def describe_partitions_in_pages(session: Session) -> None:
    session.create_topic("limits-pages", 3)
    for limit in (1, 2, 9999):
        for cursor in ({}, {"cursor": {"topic_name": "limits-pages", "partition_index": 1}}):
            fields = {"topics": [{"name": "limits-pages"}], "response_partition_limit": limit}
            session.call(request("DescribeTopicPartitions", **fields, **cursor))


@case(LIMITED)
def describe_the_topics_of_coordinators(session: Session) -> None:
    for kind, name in ((OF_GROUPS, "__consumer_offsets"), (OF_TRANSACTIONS, "__transaction_state")):
        session.request(coordinator("limits", kind))
        session.wait_for_leaders(name)
        describe(session, TOPIC, name)
