"""Tests of the load of a fleet in a sweep."""

import pytest
from msgspec.structs import replace

from sluice.fleet.models.client_model import ClientModel
from sluice.fleet.models.presets import KAFKA, KAFKA_CONSUMER
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.sweep import produce_equivalents

_BROKER = BrokerModel(produce_us=10, metadata_us=30, connection_us=100, fetch_us=20)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        pytest.param(replace(KAFKA, requests_per_s=3), 3, id="a producer's requests"),
        pytest.param(KAFKA_CONSUMER, 2 * 2 + 1, id="two fetches per second, and a heartbeat each three seconds"),
        pytest.param(replace(KAFKA_CONSUMER, group_member=False), 2 * 2, id="no heartbeats without a group"),
        pytest.param(replace(KAFKA_CONSUMER, requests_per_s=20), 20 * 2 + 1, id="each record ends a fetch"),
        pytest.param(
            replace(KAFKA_CONSUMER, requests_per_s=20, fetch_min_bytes=500), 4 * 2 + 1, id="five records end a fetch"
        ),
    ],
)
def test_load_of_a_client_is_in_produce_requests(model: ClientModel, expected: float) -> None:
    assert produce_equivalents(model, _BROKER) == pytest.approx(expected)
