"""ListConfigResources: resources with configs, by type."""

import pytest

from sluice.protocol.apis.list_config_resources import ListConfigResourcesRequest
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import broker_with_topic

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


def listed(version: int, *kinds: int) -> tuple[int, list[tuple[int, str]]]:
    broker = broker_with_topic("node.id=3")
    broker.topic("u")
    configs = broker.broker.configs
    configs.groups.configure("g", {"consumer.session.timeout.ms": "50000"})
    configs.client_metrics.configure("m", {"metrics": "*"})
    response = broker.client().call(ListConfigResourcesRequest(resource_types=list(kinds)), version)
    return response.error_code, [
        (resource.resource_type, resource.resource_name) for resource in response.config_resources
    ]


KINDS = {
    "empty list requests all types": (
        (),
        [(GROUP, "g"), (CLIENT_METRICS, "m"), (BROKER_LOGGER, "3"), (BROKER, "3"), (TOPIC, "t"), (TOPIC, "u")],
    ),
    "two types": ((TOPIC, GROUP), [(GROUP, "g"), (TOPIC, "t"), (TOPIC, "u")]),
    "duplicate type is listed once": ((BROKER, BROKER), [(BROKER, "3")]),
}


@pytest.mark.parametrize(("kinds", "expected"), KINDS.values(), ids=KINDS)
def test_resources_are_listed_by_type(kinds: tuple[int, ...], expected: list[tuple[int, str]]) -> None:
    assert listed(1, *kinds) == (0, expected)


def test_version_0_lists_client_metrics_only() -> None:
    assert listed(0) == (0, [(CLIENT_METRICS, "m")])


def test_unknown_resource_type_is_rejected() -> None:
    assert listed(1, TOPIC, 99) == (ErrorCode.UNSUPPORTED_VERSION, [])
