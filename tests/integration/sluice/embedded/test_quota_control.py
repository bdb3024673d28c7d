"""Quotas of a broker on real sockets."""

import re

import pytest

from sluice import Broker
from sluice.errors import SluiceError
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


WRONG = {
    "no quota": ({}, "quota: expected at least one of produce, fetch, request_percentage, controller_mutation_rate"),
    "the same quota by two names": (
        {"produce": 1, "producer_byte_rate": 1},
        "quota: produce and producer_byte_rate are the same quota; expected one of them",
    ),
    "a boolean": ({"produce": True}, "quota: produce: expected a number, str or None, got True"),
    "no number": ({"produce": "fast"}, "quota.produce: expected bytes per second, such as 100000 or 100k, got fast"),
    "zero": ({"fetch": 0}, "quota: Quota consumer_byte_rate must be greater than 0"),
    "nobody": ({"fetch": 1, "client_id": ""}, "quota: Empty client-id not supported"),
}


@pytest.mark.parametrize(("how", "problem"), WRONG.values(), ids=WRONG)
async def test_invalid_quota_is_rejected(how: dict[str, object], problem: str) -> None:
    async with Broker() as broker:
        with pytest.raises(SluiceError, match=f"^{re.escape(problem)}$"):
            broker.quota(**how)  # type: ignore[arg-type]  # that is the point
