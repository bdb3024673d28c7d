"""DescribeConfigs: configs of every resource type, their sources, sensitive values and errors."""

from typing import Any

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.config.property_table import TOPIC_DEFAULT_OF, TOPIC_PROPERTIES
from sluice.protocol.apis import describe_configs as api
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

OWN = ("sluice.", "quota.profile")
OURS = ("sluice.", "quota.consumer.", "quota.producer.", "quota.profile")
# A property of 3.9, and two of the authorizer.
NOT_DESCRIBED_BY_KAFKA = {"log.message.downconversion.enable", "super.users", "allow.everyone.if.no.acl.found"}
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
TOPIC_SOURCE, STATIC_SOURCE, DEFAULT_SOURCE, LOGGER_SOURCE = 1, 4, 5, 6


def describe(
    broker: VirtualBroker, kind: int, name: str, *keys: str, version: int = 4, **more: Any
) -> api.DescribeConfigsResult:
    resource = api.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) if keys else None
    )
    (result,) = broker.client().call(api.DescribeConfigsRequest(resources=[resource], **more), version).results
    assert isinstance(result, api.DescribeConfigsResult)
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def by_name(result: api.DescribeConfigsResult) -> dict[str, api.DescribeConfigsResourceResult]:
    assert result.error_code == 0
    return {config.name: config for config in result.configs}


def test_topic_has_all_public_topic_configs(topic: Topic, broker: VirtualBroker) -> None:
    former = {"message.format.version", "message.timestamp.difference.max.ms"}
    assert set(by_name(describe(broker, TOPIC, "t"))) == set(TOPIC_PROPERTIES) - former - {"internal.segment.bytes"}


# Counts of Kafka's own tables (LogConfig, KafkaConfig), without internal configs.
RELEASE_CONFIGS = [("1.1", 24, 171), ("2.8", 26, 218), ("3.4", 26, 252), ("3.9", 36, 315), ("4.4", 37, 350)]


@pytest.mark.parametrize(("release", "topic_configs", "broker_configs"), RELEASE_CONFIGS)
def test_configs_are_those_of_the_release(release: str, topic_configs: int, broker_configs: int) -> None:
    broker = broker_with_topic(f"sluice.kafka.release=kafka-{release}")
    of_broker = [name for name in by_name(describe(broker, BROKER, "1", version=1)) if not name.startswith(OWN)]
    assert (len(by_name(describe(broker, TOPIC, "t", version=1))), len(of_broker)) == (topic_configs, broker_configs)


RESOURCES = [
    ("1.1", {TOPIC, BROKER}),
    ("3.4", {TOPIC, BROKER, BROKER_LOGGER}),
    ("3.9", {TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS}),
    ("4.4", {TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP}),
]


@pytest.mark.parametrize(("release", "kinds"), RESOURCES)
def test_resources_are_those_of_the_release(release: str, kinds: set[int]) -> None:
    broker = broker_with_topic(f"sluice.kafka.release=kafka-{release}")
    names = {TOPIC: "t", BROKER: "1", BROKER_LOGGER: "1", CLIENT_METRICS: "m", GROUP: "g"}
    assert {kind for kind, name in names.items() if not describe(broker, kind, name, version=1).error_code} == kinds


def test_former_config_has_the_default_of_its_release() -> None:
    broker = VirtualBroker("sluice.kafka.release=kafka-2.8")
    configs = by_name(describe(broker, BROKER, "1", version=1))
    assert configs["inter.broker.protocol.version"].value == "2.8-IV1"
    assert (configs["zookeeper.connect"].value, configs["zookeeper.connect"].is_sensitive) == (None, False)


def test_broker_has_all_broker_configs_and_those_of_kafka() -> None:
    found = set(by_name(describe(VirtualBroker("node.id=3"), BROKER, "3")))
    of_kafka = {name for name in found if not name.startswith(OURS)} - NOT_DESCRIBED_BY_KAFKA
    assert len(of_kafka) == 350, "as Kafka 4.4.0 describes"


def test_values_given_at_the_start_are_static() -> None:
    broker = VirtualBroker("node.id=3", "num.io.threads=9", "num.partitions=2", "zookeeper.connect=secret:2181")
    configs = by_name(describe(broker, BROKER, "3", include_synonyms=True))
    expected = {
        "node.id": ("3", STATIC_SOURCE, True),
        "broker.id": ("3", STATIC_SOURCE, True),
        "num.io.threads": ("9", STATIC_SOURCE, False),
        "num.partitions": ("2", STATIC_SOURCE, True),
        "zookeeper.connect": (None, STATIC_SOURCE, True),  # Kafka 4.4 does not know its type, and hides it
        "background.threads": ("10", DEFAULT_SOURCE, False),
        "broker.rack": (None, DEFAULT_SOURCE, True),
        "replica.selector.class": (None, DEFAULT_SOURCE, True),
    }
    found = {name: (configs[name].value, configs[name].config_source, configs[name].read_only) for name in expected}
    assert found == expected
    assert synonyms(configs["num.io.threads"]) == [
        ("num.io.threads", "9", STATIC_SOURCE),
        ("num.io.threads", "8", DEFAULT_SOURCE),
    ]


@pytest.mark.parametrize("version", range(5))
def test_config_source_is_returned(version: int) -> None:
    broker = broker_with_topic("log.retention.bytes=5000", retention_ms="1234")
    configs = by_name(describe(broker, TOPIC, "t", version=version))
    sources = {
        name: (configs[name].value, configs[name].config_source if version >= 1 else configs[name].is_default)
        for name in ("retention.ms", "retention.bytes", "cleanup.policy")
    }
    assert sources == {
        "retention.ms": ("1234", TOPIC_SOURCE if version >= 1 else False),
        "retention.bytes": ("5000", STATIC_SOURCE if version >= 1 else False),
        "cleanup.policy": ("delete", DEFAULT_SOURCE if version >= 1 else True),
    }


def test_only_requested_keys_are_returned(topic: Topic, broker: VirtualBroker) -> None:
    result = describe(broker, TOPIC, "t", "retention.ms", "no.such.config", "cleanup.policy")
    assert set(by_name(result)) == {"retention.ms", "cleanup.policy"}


def test_config_types_equal_kafkas_numbers() -> None:
    configs = by_name(describe(VirtualBroker(), BROKER, "1"))
    names = ("auto.create.topics.enable", "compression.type", "num.partitions", "listeners", "log.retention.ms")
    assert [configs[name].config_type for name in names] == [1, 2, 3, 7, 5]


def synonyms(config: api.DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms]


def test_synonyms_and_documentation_are_returned_on_request() -> None:
    broker = broker_with_topic("log.retention.bytes=5000", retention_bytes="7000")
    brief = by_name(describe(broker, TOPIC, "t"))["retention.bytes"]
    assert (brief.synonyms, brief.documentation) == ([], None)
    detailed = by_name(describe(broker, TOPIC, "t", include_synonyms=True, include_documentation=True))
    assert synonyms(detailed["retention.bytes"]) == [
        ("retention.bytes", "7000", TOPIC_SOURCE),
        ("log.retention.bytes", "5000", STATIC_SOURCE),
        ("log.retention.bytes", "-1", DEFAULT_SOURCE),
    ]
    assert synonyms(detailed["preallocate"]) == [("log.preallocate", "false", DEFAULT_SOURCE)]
    assert synonyms(detailed["flush.ms"]) == []
    assert detailed["retention.bytes"].documentation == TOPIC_PROPERTIES["retention.bytes"].doc


def test_sensitive_value_is_never_returned() -> None:
    broker = VirtualBroker("sluice.admin.token=secret")
    token = by_name(describe(broker, BROKER, "1", include_synonyms=True))["sluice.admin.token"]
    assert (token.is_sensitive, token.value) == (True, None)
    assert synonyms(token) == [
        ("sluice.admin.token", None, STATIC_SOURCE),
        ("sluice.admin.token", None, DEFAULT_SOURCE),
    ]


def test_only_dynamic_broker_configs_are_not_read_only(topic: Topic, broker: VirtualBroker) -> None:
    configs = by_name(describe(broker, BROKER, "1"))
    alterable = {name for name, config in configs.items() if not config.read_only} - NOT_DESCRIBED_BY_KAFKA
    assert len(alterable) == 104, "as Kafka 4.4.0 describes"
    assert alterable > {*TOPIC_DEFAULT_OF.values(), "max.connections", "num.io.threads"} - NOT_DESCRIBED_BY_KAFKA
    assert not alterable & {"node.id", "broker.rack", "log.dirs", "sluice.brokers", "group.max.size"}
    assert {config.read_only for config in by_name(describe(broker, TOPIC, "t")).values()} == {False}


def test_only_min_insync_replicas_is_a_cluster_default_initially() -> None:
    (config,) = describe(VirtualBroker("min.insync.replicas=2"), BROKER, "").configs
    assert (config.name, config.value, config.config_source) == ("min.insync.replicas", "2", 3)
    assert describe(VirtualBroker("sluice.kafka.release=kafka-3.9"), BROKER, "").configs == []


def test_group_has_the_configs_of_all_group_types() -> None:
    configs = by_name(describe(VirtualBroker(), GROUP, "any", include_synonyms=True))
    assert {name: (config.value, config.read_only) for name, config in configs.items()} == {
        "consumer.session.timeout.ms": ("45000", False),
        "consumer.heartbeat.interval.ms": ("5000", False),
        "consumer.assignment.interval.ms": ("1000", False),
        "streams.session.timeout.ms": ("45000", False),
        "streams.heartbeat.interval.ms": ("5000", False),
        "streams.num.standby.replicas": ("0", False),
        "streams.initial.rebalance.delay.ms": ("3000", False),
        "streams.assignment.interval.ms": ("1000", False),
        "streams.rack.aware.assignment.tags": ("", False),
        "streams.assignor.name": ("sticky", False),
        "share.session.timeout.ms": ("45000", False),
        "share.heartbeat.interval.ms": ("5000", False),
        "share.record.lock.duration.ms": ("30000", False),
        "share.delivery.count.limit": ("5", False),
        "share.partition.max.record.locks": ("2000", False),
        "share.auto.offset.reset": ("latest", False),
        "share.isolation.level": ("read_uncommitted", False),
        "share.renew.acknowledge.enable": ("true", False),
        "share.assignment.interval.ms": ("1000", False),
        "errors.deadletterqueue.topic.name": ("", False),
        "errors.deadletterqueue.copy.record.enable": ("false", False),
    }
    timeout = configs["consumer.session.timeout.ms"]
    assert synonyms(timeout) == [("group.consumer.session.timeout.ms", "45000", DEFAULT_SOURCE)]
    assert synonyms(configs["streams.assignor.name"]) == [("group.streams.assignors", "sticky", DEFAULT_SOURCE)]
    assert synonyms(configs["share.isolation.level"]) == [("share.isolation.level", "read_uncommitted", DEFAULT_SOURCE)]


def test_internal_configs_of_a_group_are_described_if_they_are_set() -> None:
    broker = VirtualBroker("group.streams.num.warmup.replicas=3")
    broker.broker.cluster.group_configs.configure("any", {"streams.task.offset.interval.ms": "20000"})
    configs = by_name(describe(broker, GROUP, "any"))
    assert configs["streams.num.warmup.replicas"].value == "3"
    assert configs["streams.task.offset.interval.ms"].value == "20000"
    assert configs.keys().isdisjoint({"streams.acceptable.recovery.lag", "streams.assignor.offload.enable"})


def test_unknown_client_metrics_subscription_has_defaults() -> None:
    configs = by_name(describe(VirtualBroker(), CLIENT_METRICS, "any", include_synonyms=True))
    assert {name: (config.value, config.config_source, config.synonyms) for name, config in configs.items()} == {
        "metrics": ("", DEFAULT_SOURCE, []),
        "interval.ms": ("300000", DEFAULT_SOURCE, []),
        "match": ("", DEFAULT_SOURCE, []),
    }


def test_broker_loggers_have_levels() -> None:
    configs = by_name(describe(VirtualBroker(), BROKER_LOGGER, "1"))
    assert {"root", "sluice.broker", "sluice.purgatory"} <= set(configs)
    assert {config.config_source for config in configs.values()} == {LOGGER_SOURCE}
    assert {config.value for config in configs.values()} <= {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}


INVALID_RESOURCES = {
    "unknown topic": (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "invalid topic name": (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
    "other broker": (BROKER, "2", ErrorCode.INVALID_REQUEST),
    "broker id that is not a number": (BROKER, "one", ErrorCode.INVALID_REQUEST),
    "loggers without broker id": (BROKER_LOGGER, "", ErrorCode.INVALID_REQUEST),
    "loggers of another broker": (BROKER_LOGGER, "2", ErrorCode.INVALID_REQUEST),
    "empty group id": (GROUP, "", ErrorCode.INVALID_REQUEST),
    "empty subscription name": (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
    "unknown resource type": (77, "1", ErrorCode.INVALID_REQUEST),
}


@pytest.mark.parametrize(("kind", "name", "code"), INVALID_RESOURCES.values(), ids=INVALID_RESOURCES)
def test_invalid_resource_is_rejected(kind: int, name: str, code: ErrorCode) -> None:
    result = describe(VirtualBroker(), kind, name)
    assert (result.error_code, result.configs) == (code, [])
    # As in Kafka, a missing topic has no message.
    assert bool(result.error_message) == (code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_unknown_resource_type_fails_the_whole_request(broker: VirtualBroker) -> None:
    resources = [api.DescribeConfigsResource(resource_type=kind, resource_name="1") for kind in (BROKER, 77, BROKER)]
    results = broker.client().call(api.DescribeConfigsRequest(resources=resources), 4).results
    assert [(one.resource_type, one.error_code, one.configs) for one in results] == [
        (kind, ErrorCode.INVALID_REQUEST, []) for kind in (BROKER, 77, BROKER)
    ]
