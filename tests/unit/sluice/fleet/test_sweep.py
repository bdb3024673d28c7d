"""Tests of the load of a fleet in a sweep."""

import pytest
from msgspec.structs import replace

from sluice.fleet.models.client_model import ClientModel
from sluice.fleet.models.presets import KAFKA, KAFKA_CONSUMER
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.sweep import produce_equivalents

_BROKER = BrokerModel(produce_us=10, metadata_us=30, connection_us=100, fetch_us=20)


LOADS = {
    "a producer's requests": (replace(KAFKA, requests_per_s=3), 3),
    "two fetches per second, and a heartbeat each three seconds": (KAFKA_CONSUMER, 2 * 2 + 1),
    "no heartbeats without a group": (replace(KAFKA_CONSUMER, group_member=False), 2 * 2),
    "each record ends a fetch": (replace(KAFKA_CONSUMER, requests_per_s=20), 20 * 2 + 1),
    "five records end a fetch": (replace(KAFKA_CONSUMER, requests_per_s=20, fetch_min_bytes=500), 4 * 2 + 1),
}


@pytest.mark.parametrize(("model", "expected"), LOADS.values(), ids=LOADS)
def test_load_of_a_client_is_in_produce_requests(model: ClientModel, expected: float) -> None:
    assert produce_equivalents(model, _BROKER) == pytest.approx(expected)
