"""KIP-13's static quotas, overridden by dynamic ones."""

import pytest

from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.quotas.store import QuotaStore

STATIC = {"gold": 400.0, "silver": 200.0}
EVERYONE = QuotaEntity(client_id=DEFAULT)
GOLD, ANONYMOUS = QuotaEntity(client_id="gold"), QuotaEntity(user="ANONYMOUS")


def limit_of(manager: ClientQuotaManager, client_id: str) -> float:
    return manager.max_value_in_quota_window("ANONYMOUS", client_id) / 10  # ten whole windows of 1 s


# Alterations, then the quotas of gold, silver and another client.
ALTERATIONS: dict[str, tuple[list[tuple[QuotaEntity, float | None]], tuple[float, float, float]]] = {
    "no alteration": ([], (400.0, 200.0, 100.0)),
    "a dynamic override replaces a static one": ([(GOLD, 1.0)], (1.0, 200.0, 100.0)),
    "a dynamic default replaces the static default, not overrides": ([(EVERYONE, 1.0)], (400.0, 200.0, 1.0)),
    "removing a dynamic quota restores the static one": ([(GOLD, 1.0), (GOLD, None)], (400.0, 200.0, 100.0)),
    "a static quota cannot be removed": ([(GOLD, None)], (400.0, 200.0, 100.0)),
    "a user's dynamic quota takes precedence over all client ids'": ([(ANONYMOUS, 1.0)], (1.0, 1.0, 1.0)),
}


@pytest.mark.parametrize(("alterations", "limits"), ALTERATIONS.values(), ids=ALTERATIONS)
def test_effective_quotas(
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


def test_unsubscribed_listener_receives_nothing() -> None:
    store, received = QuotaStore[str]({"a": 1.0}), dict[str, float | None]()
    store.follow(received.__setitem__)
    store.unfollow(received.__setitem__)
    store.unfollow(received.__setitem__)
    store.alter("b", 2.0)
    assert received == {"a": 1.0}


def test_reader_sees_the_effective_quotas() -> None:
    store = QuotaStore({EVERYONE: 100.0})
    store.alter(GOLD, 1.0)
    assert store.holding == {EVERYONE: 100.0, GOLD: 1.0}
    store.alter(GOLD, None)
    assert store.holding == {EVERYONE: 100.0}
