"""KIP-13's static quotas, and dynamic ones going before them."""

import pytest

from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.quotas.store import QuotaStore

STATIC = {"gold": 400.0, "silver": 200.0}
EVERYONE = QuotaEntity(client_id=DEFAULT)


def limit_of(manager: ClientQuotaManager, client_id: str) -> float:
    return manager.max_value_in_quota_window("ANONYMOUS", client_id) / 10  # ten whole windows of 1 s


# What is altered, then the quotas of gold, silver and another client.
ALTERATIONS: dict[str, tuple[list[tuple[QuotaEntity, float | None]], tuple[float, float, float]]] = {
    "as they start": ([], (400.0, 200.0, 100.0)),
    "a dynamic override goes before a static one": ([(QuotaEntity(client_id="gold"), 1.0)], (1.0, 200.0, 100.0)),
    "a dynamic default goes before the static one, not before overrides": (
        [(QuotaEntity(client_id=DEFAULT), 1.0)],
        (400.0, 200.0, 1.0),
    ),
    "a removed dynamic quota brings the static one back": (
        [(QuotaEntity(client_id="gold"), 1.0), (QuotaEntity(client_id="gold"), None)],
        (400.0, 200.0, 100.0),
    ),
    "a static quota cannot be removed": ([(QuotaEntity(client_id="gold"), None)], (400.0, 200.0, 100.0)),
    "a user's dynamic quota goes before all client ids'": ([(QuotaEntity(user="ANONYMOUS"), 1.0)], (1.0, 1.0, 1.0)),
}


@pytest.mark.parametrize(("alterations", "limits"), ALTERATIONS.values(), ids=ALTERATIONS)
def test_quotas_that_hold(
    alterations: list[tuple[QuotaEntity, float | None]], limits: tuple[float, float, float]
) -> None:
    manager = ClientQuotaManager("Produce", QuotaConfig(), QuotaTable("unlimited"))
    store = QuotaStore({EVERYONE: 100.0} | {QuotaEntity(client_id=name): bound for name, bound in STATIC.items()})
    store.follow(manager.set_quota)
    for entity, bound in alterations:
        store.alter(entity, bound)
    assert tuple(limit_of(manager, client_id) for client_id in ("gold", "silver", "other")) == limits


def test_without_properties_no_quota_is_set() -> None:
    manager = ClientQuotaManager("Produce", QuotaConfig(), QuotaTable("unlimited"))
    store = QuotaStore[QuotaEntity]({})
    store.follow(manager.set_quota)
    enabled = [manager.quotas_enabled]
    for bound in (5.0, None):
        store.alter(QuotaEntity(client_id="c"), bound)
        enabled.append(manager.quotas_enabled)
    assert enabled == [False, True, False]


def test_who_follows_no_more_is_told_nothing() -> None:
    store, told = QuotaStore[str]({"a": 1.0}), dict[str, float | None]()
    store.follow(told.__setitem__)
    store.unfollow(told.__setitem__)
    store.unfollow(told.__setitem__)
    store.alter("b", 2.0)
    assert told == {"a": 1.0}


def test_who_looks_sees_the_quotas_that_hold() -> None:
    gold = QuotaEntity(client_id="gold")
    store = QuotaStore({EVERYONE: 100.0})
    store.alter(gold, 1.0)
    assert store.holding == {EVERYONE: 100.0, gold: 1.0}
    store.alter(gold, None)
    assert store.holding == {EVERYONE: 100.0}
