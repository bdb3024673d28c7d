"""AlterConfigs replaces all configs of a resource; omitted configs return to their defaults."""

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32
INVALID, UNKNOWN = ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def resource(kind: int, name: str, *configs: tuple[str, str | None]) -> AlterConfigsResource:
    altered = [AlterableConfig(name=key, value=value) for key, value in configs]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=altered)


def alter(
    broker: VirtualBroker, *resources: AlterConfigsResource, version: int = 2, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    """Return error code and message of each resource, in order."""
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    responses = broker.client().call(request, version).responses
    return [(response.error_code, response.error_message) for response in responses]


@pytest.mark.parametrize("version", range(3))
def test_omitted_configs_return_to_their_defaults(broker: VirtualBroker, version: int) -> None:
    topic = broker.topic(retention_ms="5", flush_ms="6")
    assert alter(broker, resource(TOPIC, "t", ("retention.ms", "7")), version=version) == [(0, None)]
    assert topic.config.own == {"retention.ms": "7"}
    assert broker.partition().log.config.retention_ms == 7
    assert alter(broker, resource(TOPIC, "t"), version=version) == [(0, None)]
    assert broker.partition().log.config.retention_ms == 604_800_000


def test_broker_and_group_configs_are_replaced(topic: Topic, broker: VirtualBroker) -> None:
    resources = (
        resource(BROKER, "1", ("log.retention.ms", "5")),
        resource(GROUP, "g", ("consumer.session.timeout.ms", "46000")),
    )
    assert alter(broker, *resources) == [(0, None), (0, None)]
    assert broker.partition().log.config.retention_ms == 5
    assert alter(broker, resource(BROKER, "1"), resource(GROUP, "g")) == [(0, None), (0, None)]
    assert broker.partition().log.config.retention_ms == 604_800_000
    assert list(broker.broker.configs.groups.names()) == []


def test_validate_only_changes_nothing(broker: VirtualBroker) -> None:
    topic = broker.topic(retention_ms="5")
    assert alter(broker, resource(TOPIC, "t"), validate_only=True) == [(0, None)]
    assert topic.config.own == {"retention.ms": "5"}


INVALID_RESOURCES = {
    "unknown topic": (resource(TOPIC, "nowhere"), UNKNOWN, "The topic 'nowhere' does not exist."),
    "unknown config": (resource(TOPIC, "t", ("x", "1")), ErrorCode.INVALID_CONFIG, "Unknown topic config name: x"),
    "null value": (
        resource(TOPIC, "t", ("retention.ms", None)),
        INVALID,
        "Null value not supported for : retention.ms",
    ),
    "duplicate config": (
        resource(TOPIC, "t", ("retention.ms", "1"), ("retention.ms", "1")),
        INVALID,
        "Error due to duplicate config keys",
    ),
    "other broker": (resource(BROKER, "7"), INVALID, "Unexpected broker id, expected 1, but received 7"),
    "broker loggers, which AlterConfigs never supports": (
        resource(BROKER_LOGGER, "1", ("root", "INFO")),
        INVALID,
        "Unknown resource type 8",
    ),
    "unknown resource type": (resource(99, "x"), INVALID, "Unknown resource type 99"),
}


@pytest.mark.parametrize(("altered", "code", "message"), INVALID_RESOURCES.values(), ids=INVALID_RESOURCES)
def test_invalid_resource_is_rejected_and_unchanged(
    broker: VirtualBroker, altered: AlterConfigsResource, code: ErrorCode, message: str
) -> None:
    topic = broker.topic(flush_ms="5")
    assert alter(broker, altered) == [(code, message)]
    assert topic.config.own == {"flush.ms": "5"}


def test_duplicate_resource_is_rejected_and_unchanged(broker: VirtualBroker) -> None:
    topic = broker.topic(flush_ms="5")
    rejected = (INVALID, "Each resource must appear at most once.")
    assert alter(broker, resource(TOPIC, "t"), resource(TOPIC, "t")) == [rejected, rejected]
    assert topic.config.own == {"flush.ms": "5"}
