"""Dynamic client quotas: validation, effective limits and entity filters."""

from math import inf, nan

import pytest

from sluice.config.broker_config import Config
from sluice.quotas.client_quotas import ClientQuotas, Entity
from sluice.quotas.entity import DEFAULT, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.quotas.store import Address, QuotaStores

P, C = "producer_byte_rate", "consumer_byte_rate"
RATE = "connection_creation_rate"
ALICE = {"user": "alice"}


def quotas_of(**static: float) -> tuple[ClientQuotas, dict[str, ClientQuotaManager]]:
    """Return client quotas and the managers of both byte rates, with static client-id quotas."""
    overrides = ",".join(f"{name}:{bound}" for name, bound in static.items())
    properties = [f"quota.{kind}.override={overrides}" for kind in ("producer", "consumer")]
    stores = QuotaStores(Config.load(None, properties))
    managers = {key: ClientQuotaManager(key, QuotaConfig(), QuotaTable("unlimited")) for key in stores.of_clients}
    for key, store in stores.of_clients.items():
        store.follow(managers[key].set_quota)
    return ClientQuotas(stores), managers


def addresses_of(*alterations: tuple[Entity, float | None]) -> dict[Address, float | None]:
    """Return the address quotas that a listener received."""
    stores = QuotaStores(Config.load(None, []))
    received: dict[Address, float | None] = {}
    stores.of_addresses.follow(received.__setitem__)
    quotas = ClientQuotas(stores)
    for entity, rate in alterations:
        quotas.alter(entity, {RATE: rate})
    return received


def limit_of(manager: ClientQuotaManager, user: str, client_id: str) -> float:
    return manager.max_value_in_quota_window(user, client_id) / 10  # ten whole windows of 1 s


ACCEPTED: dict[str, tuple[Entity, dict[str, float | None]]] = {
    "of a user": (ALICE, {P: 1000.0}),
    "of a client id": ({"client-id": "c"}, {P: 1000.0, C: 1.0}),
    "of both": ({"user": "alice", "client-id": "c"}, {C: 5.0}),
    "of everybody": ({"user": None, "client-id": None}, {C: 5.0}),
    "close to an integer": (ALICE, {P: 1.0000001}),
    "nearly nothing": (ALICE, {P: 1e-9}),
    "the largest long, as a double": (ALICE, {P: float(2**63 - 1)}),
    "removed without having been set": (ALICE, {P: None}),
    "removed, of an unknown entity": (ALICE, {"x": None}),
    "request time, fractional percent": (ALICE, {"request_percentage": 10.5}),
    "controller mutations, fractional": (ALICE, {"controller_mutation_rate": 0.5}),
    "connections of an IPv4 address": ({"ip": "1.2.3.4"}, {RATE: 5.0}),
    "connections of an IPv6 address": ({"ip": "::1"}, {RATE: 5.0}),
    "connections of localhost": ({"ip": "localhost"}, {RATE: 5.0}),
    "connections of all addresses": ({"ip": None}, {RATE: 2147483647.0}),
    "no alterations": (ALICE, {}),
}


@pytest.mark.parametrize(("entity", "changes"), ACCEPTED.values(), ids=ACCEPTED)
def test_valid_quota_is_accepted(entity: Entity, changes: dict[str, float | None]) -> None:
    quotas, _ = quotas_of()
    assert quotas.refusal(entity, changes) is None
    quotas.alter(entity, changes)
    wanted = {key: value for key, value in changes.items() if value is not None}
    assert quotas.matching({}, [], strict=False) == ([(entity, wanted)] if wanted else [])


REFUSED: dict[str, tuple[Entity, dict[str, float | None], str]] = {
    "an empty entity": ({}, {P: 1.0}, "Invalid empty client quota entity"),
    "an unknown type": ({"colour": "red"}, {P: 1.0}, "Unhandled client quota entity type: colour"),
    "an empty user": ({"user": ""}, {P: 1.0}, "Empty user not supported"),
    "an empty client id": ({"user": "a", "client-id": ""}, {P: 1.0}, "Empty client-id not supported"),
    "an address combined with a user": (
        {"user": "a", "ip": "1.2.3.4"},
        {P: 1.0},
        "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
    ),
    "an unknown key": (ALICE, {"x": 1.0}, "Invalid configuration key x"),
    "an address's key on a user": (ALICE, {RATE: 1.0}, f"Invalid configuration key {RATE}"),
    "a user's key on an address": ({"ip": "1.2.3.4"}, {P: 1.0}, f"Invalid configuration key {P}"),
    "nothing": (ALICE, {P: 0.0}, f"Quota {P} must be greater than 0"),
    "negative": (ALICE, {P: -1.0}, f"Quota {P} must be greater than 0"),
    "not a number": (ALICE, {P: nan}, f"Quota {P} must be a finite number"),
    "infinity": (ALICE, {P: inf}, f"Quota {P} must be a finite number"),
    "fractional bytes": (ALICE, {P: 1.5}, f"{P} cannot be a fractional value."),
    "more than a long": (ALICE, {P: 9.3e18}, f"Proposed value for {P} is too large for a LONG."),
    "more than an int": ({"ip": None}, {RATE: 5e9}, f"Proposed value for {RATE} is too large for an INT."),
    "fractional connections": ({"ip": None}, {RATE: 0.5}, f"{RATE} cannot be a fractional value."),
    "an invalid address": ({"ip": "1.2.3"}, {RATE: 5.0}, "1.2.3 is not a valid IP or resolvable host."),
    "an unresolvable host name": (
        {"ip": "broker.example"},
        {RATE: 5.0},
        "broker.example is not a valid IP or resolvable host.",
    ),
    "request time of 0": (ALICE, {"request_percentage": 0.0}, "Quota request_percentage must be greater than 0"),
    "mutation rate that is not a number": (
        ALICE,
        {"controller_mutation_rate": nan},
        "Quota controller_mutation_rate must be a finite number",
    ),
    "one of two values invalid": (ALICE, {P: 1.0, C: 0.5}, f"{C} cannot be a fractional value."),
}


@pytest.mark.parametrize(("entity", "changes", "problem"), REFUSED.values(), ids=REFUSED)
def test_invalid_quota_is_rejected(entity: Entity, changes: dict[str, float | None], problem: str) -> None:
    assert quotas_of()[0].refusal(entity, changes) == problem


def test_quota_applies_only_to_its_key_until_it_is_removed() -> None:
    quotas, managers = quotas_of(gold=400.0)
    quotas.alter({"client-id": "gold"}, {P: 7.0})
    assert [limit_of(managers[key], "ANONYMOUS", "gold") for key in (P, C)] == [7.0, 400.0]
    quotas.alter({"client-id": "gold"}, {P: None})
    assert limit_of(managers[P], "ANONYMOUS", "gold") == 400.0
    assert quotas.matching({}, [], strict=False) == []


def test_address_quota_listeners_receive_canonical_addresses() -> None:
    assert addresses_of(
        ({"ip": "localhost"}, 1.0),
        ({"ip": "0:0::1"}, 2.0),
        ({"ip": "::ffff:10.0.0.9"}, 3.0),
        ({"ip": None}, 4.0),
        ({"ip": "10.0.0.1"}, 5.0),
        ({"ip": "10.0.0.1"}, None),
    ) == {"127.0.0.1": 1.0, "::1": 2.0, "10.0.0.9": 3.0, DEFAULT: 4.0, "10.0.0.1": None}


def test_most_specific_quota_applies() -> None:
    quotas, managers = quotas_of()
    levels: list[Entity] = [
        {"client-id": None},
        {"client-id": "c"},
        {"user": None},
        {"user": None, "client-id": None},
        {"user": None, "client-id": "c"},
        {"user": "alice"},
        {"user": "alice", "client-id": None},
        {"user": "alice", "client-id": "c"},
    ]
    held = []
    for number, entity in enumerate(levels, start=1):
        quotas.alter(entity, {P: float(number)})
        held.append(limit_of(managers[P], "alice", "c"))
    assert held == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


SET: list[Entity] = [
    ALICE,
    {"user": "alice", "client-id": "c"},
    {"user": "alice", "client-id": None},
    {"user": None},
    {"client-id": "c"},
]


FILTERS = {
    "empty filter returns everything": ({}, [], False, [0, 1, 2, 3, 4]),
    "strict empty filter returns nothing": ({}, [], True, []),
    "a user with any client id": (ALICE, [], False, [0, 1, 2]),
    "a user, strict": (ALICE, [], True, [0]),
    "the default user": ({"user": None}, [], False, [3]),
    "any user, including the default": ({}, ["user"], False, [0, 1, 2, 3]),
    "any user, strict": ({}, ["user"], True, [0, 3]),
    "a user and the default client id": ({"user": "alice", "client-id": None}, [], True, [2]),
    "any user of one client id": ({"client-id": "c"}, ["user"], True, [1]),
    "a user without quotas": ({"user": "bob"}, [], False, []),
    "any address": ({}, ["ip"], False, []),
}


@pytest.mark.parametrize(("exact", "specified", "strict", "found"), FILTERS.values(), ids=FILTERS)
def test_filter_returns_matching_entities_in_insertion_order(
    exact: Entity, specified: list[str], strict: bool, found: list[int]
) -> None:
    quotas, _ = quotas_of()
    for number, entity in enumerate(SET, start=1):
        quotas.alter(entity, {P: float(number)})
    matching = quotas.matching(exact, specified, strict=strict)
    assert matching == [(SET[index], {P: float(index + 1)}) for index in found]
