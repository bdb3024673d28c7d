"""Quotas of a broker on real sockets."""

import pytest

from sluice import Broker
from sluice.quotas.client_quotas import Entity

PRODUCE = {"producer_byte_rate": 1000.0}
SET: dict[str, tuple[dict[str, object], Entity, dict[str, float]]] = {
    "of a client id": ({"client_id": "shop", "produce": 1000}, {"client-id": "shop"}, PRODUCE),
    "of a user": ({"user": "alice", "produce": "1k"}, {"user": "alice"}, PRODUCE),
    "of a user's client id": (
        {"user": "alice", "client_id": "shop", "produce": 1000},
        {"user": "alice", "client-id": "shop"},
        PRODUCE,
    ),
    "by Kafka's name": ({"producer_byte_rate": "1k"}, {"client-id": None}, PRODUCE),
    "of all client ids": ({"produce": 1000}, {"client-id": None}, PRODUCE),
    "all kinds of quota": (
        {"produce": "1k", "fetch": "2Ki", "request_percentage": 12.5},
        {"client-id": None},
        {**PRODUCE, "consumer_byte_rate": 2048.0, "request_percentage": 12.5},
    ),
}


@pytest.mark.parametrize(("how", "entity", "quotas"), SET.values(), ids=SET)
async def test_quotas_are_set_and_removed(how: dict[str, object], entity: Entity, quotas: dict[str, float]) -> None:
    async with Broker() as broker:
        altered = broker._started.cluster.client_quotas
        with broker.quota(**how) as quota:  # type: ignore[arg-type]  # some of them each
            assert altered.matching({}, (), strict=False) == [(entity, quotas)]
        assert altered.matching({}, (), strict=False) == []
        quota.remove()
