"""DescribeConfigs: of all that has configs; where values come from; what is hidden; errors."""

from typing import Any

import pytest

from sluice.config.property_table import PROPERTIES, TOPIC_DEFAULT_OF, TOPIC_PROPERTIES
from sluice.protocol.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
TOPIC_SOURCE, STATIC_SOURCE, DEFAULT_SOURCE, LOGGER_SOURCE = 1, 4, 5, 6


def describe(
    broker: VirtualBroker, kind: int, name: str, *keys: str, version: int = 4, **more: Any
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) if keys else None
    )
    (result,) = broker.client().ask(DescribeConfigsRequest(resources=[resource], **more), version).results
    assert isinstance(result, DescribeConfigsResult)
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def by_name(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    assert result.error_code == 0
    return {config.name: config for config in result.configs}


def test_a_topic_has_every_config_of_the_table_but_the_internal_one() -> None:
    broker = VirtualBroker()
    broker.topic()
    assert set(by_name(describe(broker, TOPIC, "t"))) == set(TOPIC_PROPERTIES) - {"internal.segment.bytes"}


def test_the_broker_has_every_property_of_the_table() -> None:
    assert set(by_name(describe(VirtualBroker("node.id=3"), BROKER, "3"))) == set(PROPERTIES)


@pytest.mark.parametrize("version", range(5))
def test_it_is_told_where_a_value_comes_from(version: int) -> None:
    broker = VirtualBroker("log.retention.bytes=5000")
    broker.topic(retention_ms="1234")
    configs = by_name(describe(broker, TOPIC, "t", version=version))
    found = {
        name: (configs[name].value, configs[name].config_source if version >= 1 else configs[name].is_default)
        for name in ("retention.ms", "retention.bytes", "cleanup.policy")
    }
    assert found == {
        "retention.ms": ("1234", TOPIC_SOURCE if version >= 1 else False),
        "retention.bytes": ("5000", STATIC_SOURCE if version >= 1 else False),
        "cleanup.policy": ("delete", DEFAULT_SOURCE if version >= 1 else True),
    }


def test_only_the_keys_asked_for_are_answered() -> None:
    broker = VirtualBroker()
    broker.topic()
    result = describe(broker, TOPIC, "t", "retention.ms", "no.such.config", "cleanup.policy")
    assert set(by_name(result)) == {"retention.ms", "cleanup.policy"}


def test_types_are_kafkas_numbers() -> None:
    configs = by_name(describe(VirtualBroker(), BROKER, "1"))
    names = ("auto.create.topics.enable", "compression.type", "num.partitions", "listeners", "log.retention.ms")
    assert [configs[name].config_type for name in names] == [1, 2, 3, 7, 5]


def synonyms(config: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms]


def test_synonyms_and_documentation_are_told_where_they_are_asked_for() -> None:
    broker = VirtualBroker("log.retention.bytes=5000")
    broker.topic(retention_bytes="7000")
    silent = by_name(describe(broker, TOPIC, "t"))["retention.bytes"]
    assert (silent.synonyms, silent.documentation) == ([], None)
    told = by_name(describe(broker, TOPIC, "t", include_synonyms=True, include_documentation=True))
    assert synonyms(told["retention.bytes"]) == [
        ("retention.bytes", "7000", TOPIC_SOURCE),
        ("log.retention.bytes", "5000", STATIC_SOURCE),
        ("log.retention.bytes", "-1", DEFAULT_SOURCE),
    ]
    assert synonyms(told["preallocate"]) == []
    assert told["retention.bytes"].documentation == TOPIC_PROPERTIES["retention.bytes"].doc


def test_a_password_is_never_told() -> None:
    broker = VirtualBroker("sluice.admin.token=secret")
    token = by_name(describe(broker, BROKER, "1", include_synonyms=True))["sluice.admin.token"]
    assert (token.is_sensitive, token.value) == (True, None)
    assert synonyms(token) == [
        ("sluice.admin.token", None, STATIC_SOURCE),
        ("sluice.admin.token", None, DEFAULT_SOURCE),
    ]


def test_of_the_broker_only_what_can_be_altered_is_not_read_only() -> None:
    broker = VirtualBroker()
    broker.topic()
    configs = by_name(describe(broker, BROKER, "1"))
    assert {name for name, config in configs.items() if not config.read_only} == {
        *TOPIC_DEFAULT_OF.values(),
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "producer.id.expiration.ms",
    }
    assert {config.read_only for config in by_name(describe(broker, TOPIC, "t")).values()} == {False}


def test_the_defaults_of_all_brokers_are_none_to_begin_with() -> None:
    assert by_name(describe(VirtualBroker(), BROKER, "")) == {}


def test_a_group_has_the_configs_of_consumer_groups() -> None:
    configs = by_name(describe(VirtualBroker(), GROUP, "any", include_synonyms=True))
    assert {name: (config.value, config.read_only) for name, config in configs.items()} == {
        "consumer.session.timeout.ms": ("45000", False),
        "consumer.heartbeat.interval.ms": ("5000", False),
        "consumer.assignment.interval.ms": ("1000", False),
    }
    timeout = configs["consumer.session.timeout.ms"]
    assert synonyms(timeout) == [("group.consumer.session.timeout.ms", "45000", DEFAULT_SOURCE)]


def test_a_client_metrics_subscription_that_nobody_made_has_defaults() -> None:
    configs = by_name(describe(VirtualBroker(), CLIENT_METRICS, "any", include_synonyms=True))
    assert {name: (config.value, config.config_source, config.synonyms) for name, config in configs.items()} == {
        "metrics": ("", DEFAULT_SOURCE, []),
        "interval.ms": ("300000", DEFAULT_SOURCE, []),
        "match": ("", DEFAULT_SOURCE, []),
    }


def test_loggers_have_levels() -> None:
    configs = by_name(describe(VirtualBroker(), BROKER_LOGGER, "1"))
    assert {"root", "sluice.broker", "sluice.purgatory"} <= set(configs)
    assert {config.config_source for config in configs.values()} == {LOGGER_SOURCE}
    assert {config.value for config in configs.values()} <= {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        pytest.param(TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="an unknown topic: 3"),
        pytest.param(TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION, id="an invalid topic name: 17"),
        pytest.param(BROKER, "2", ErrorCode.INVALID_REQUEST, id="another broker: 42"),
        pytest.param(BROKER, "one", ErrorCode.INVALID_REQUEST, id="no broker's id: 42"),
        pytest.param(BROKER_LOGGER, "", ErrorCode.INVALID_REQUEST, id="no broker's loggers: 42"),
        pytest.param(BROKER_LOGGER, "2", ErrorCode.INVALID_REQUEST, id="another broker's loggers: 42"),
        pytest.param(GROUP, "", ErrorCode.INVALID_REQUEST, id="a group without a name: 42"),
        pytest.param(CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST, id="a subscription without a name: 42"),
        pytest.param(77, "1", ErrorCode.INVALID_REQUEST, id="a type that nobody knows: 42"),
    ],
)
def test_what_cannot_be_described_is_refused(kind: int, name: str, code: ErrorCode) -> None:
    result = describe(VirtualBroker(), kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert result.error_message
