"""AlterConfigs: all configs of a resource are replaced; what is left out is back to its default."""

import pytest

from sluice.protocol.apis.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32


def resource(kind: int, name: str, *configs: tuple[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in configs],
    )


def alter(
    broker: VirtualBroker, *resources: AlterConfigsResource, version: int = 2, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    """Error code and message of each resource, in their order."""
    request = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    responses = broker.client().ask(request, version).responses
    return [(one.error_code, one.error_message) for one in responses]


@pytest.mark.parametrize("version", range(3))
def test_what_is_left_out_is_back_to_its_default(version: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic(retention_ms="5", flush_ms="6")
    assert alter(broker, resource(TOPIC, "t", ("retention.ms", "7")), version=version) == [(0, None)]
    assert topic.config.own == {"retention.ms": "7"}
    assert broker.partition().log.config.retention_ms == 7
    assert alter(broker, resource(TOPIC, "t"), version=version) == [(0, None)]
    assert broker.partition().log.config.retention_ms == 604_800_000


def test_configs_of_brokers_and_groups_are_replaced_too() -> None:
    broker = VirtualBroker()
    broker.topic()
    wanted = (
        resource(BROKER, "1", ("log.retention.ms", "5")),
        resource(GROUP, "g", ("consumer.session.timeout.ms", "46000")),
    )
    assert alter(broker, *wanted) == [(0, None), (0, None)]
    assert broker.partition().log.config.retention_ms == 5
    assert alter(broker, resource(BROKER, "1"), resource(GROUP, "g")) == [(0, None), (0, None)]
    assert broker.partition().log.config.retention_ms == 604_800_000
    assert list(broker.broker.configs.groups.names()) == []


def test_where_only_validation_is_asked_for_nothing_is_altered() -> None:
    broker = VirtualBroker()
    topic = broker.topic(retention_ms="5")
    assert alter(broker, resource(TOPIC, "t"), validate_only=True) == [(0, None)]
    assert topic.config.own == {"retention.ms": "5"}


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        pytest.param(
            resource(TOPIC, "nowhere"),
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'nowhere' does not exist.",
            id="an unknown topic: 3",
        ),
        pytest.param(
            resource(TOPIC, "t", ("x", "1")),
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: x",
            id="an unknown config: 40",
        ),
        pytest.param(
            resource(TOPIC, "t", ("retention.ms", None)),
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
            id="no value: 42",
        ),
        pytest.param(
            resource(TOPIC, "t", ("retention.ms", "1"), ("retention.ms", "1")),
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
            id="a config twice: 42",
        ),
        pytest.param(
            resource(BROKER, "7"),
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1, but received 7",
            id="another broker: 42",
        ),
        pytest.param(
            resource(BROKER_LOGGER, "1", ("root", "INFO")),
            ErrorCode.INVALID_REQUEST,
            "Unknown resource type 8",
            id="levels of loggers, which it never could: 42",
        ),
        pytest.param(
            resource(99, "x"), ErrorCode.INVALID_REQUEST, "Unknown resource type 99", id="an unknown type: 42"
        ),
    ],
)
def test_what_cannot_be_is_refused(wanted: AlterConfigsResource, code: ErrorCode, message: str) -> None:
    broker = VirtualBroker()
    topic = broker.topic(flush_ms="5")
    assert alter(broker, wanted) == [(code, message)]
    assert topic.config.own == {"flush.ms": "5"}


def test_a_resource_that_comes_twice_is_altered_neither_time() -> None:
    broker = VirtualBroker()
    topic = broker.topic(flush_ms="5")
    refused = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert alter(broker, resource(TOPIC, "t"), resource(TOPIC, "t")) == [refused, refused]
    assert topic.config.own == {"flush.ms": "5"}
