"""Quotas that are altered while the broker runs: what may be set, what then holds, and which entities match."""

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
    """Both keys' managers, with the static quotas of client ids."""
    overrides = ",".join(f"{name}:{bound}" for name, bound in static.items())
    properties = [f"quota.{kind}.override={overrides}" for kind in ("producer", "consumer")]
    stores = QuotaStores(Config.load(None, properties))
    managers = {key: ClientQuotaManager(key, QuotaConfig(), QuotaTable("unlimited")) for key in stores.of_clients}
    for key, store in stores.of_clients.items():
        store.follow(managers[key].set_quota)
    return ClientQuotas(stores), managers


def addresses_of(*alterations: tuple[Entity, float | None]) -> dict[Address, float | None]:
    """What those who follow the quotas of addresses are told."""
    stores = QuotaStores(Config.load(None, []))
    told: dict[Address, float | None] = {}
    stores.of_addresses.follow(told.__setitem__)
    quotas = ClientQuotas(stores)
    for entity, rate in alterations:
        quotas.alter(entity, {RATE: rate})
    return told


def limit_of(manager: ClientQuotaManager, user: str, client_id: str) -> float:
    return manager.max_value_in_quota_window(user, client_id) / 10  # ten whole windows of 1 s


ACCEPTED: dict[str, tuple[Entity, dict[str, float | None]]] = {
    "of a user": (ALICE, {P: 1000.0}),
    "of a client id": ({"client-id": "c"}, {P: 1000.0, C: 1.0}),
    "of both": ({"user": "alice", "client-id": "c"}, {C: 5.0}),
    "of everybody": ({"user": None, "client-id": None}, {C: 5.0}),
    "nearly a whole number": (ALICE, {P: 1.0000001}),
    "nearly nothing": (ALICE, {P: 1e-9}),
    "the largest long, as a double": (ALICE, {P: float(2**63 - 1)}),
    "removed though never set": (ALICE, {P: None}),
    "removed though nobody knows it": (ALICE, {"x": None}),
    "request time, in parts of a percent": (ALICE, {"request_percentage": 10.5}),
    "mutations, in parts of a partition": (ALICE, {"controller_mutation_rate": 0.5}),
    "connections of an address": ({"ip": "1.2.3.4"}, {RATE: 5.0}),
    "connections of an address of version 6": ({"ip": "::1"}, {RATE: 5.0}),
    "connections of this machine": ({"ip": "localhost"}, {RATE: 5.0}),
    "connections of all addresses": ({"ip": None}, {RATE: 2147483647.0}),
    "nothing at all": (ALICE, {}),
}


@pytest.mark.parametrize(("entity", "changes"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_may_be_set(entity: Entity, changes: dict[str, float | None]) -> None:
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
    "an address with a user": (
        {"user": "a", "ip": "1.2.3.4"},
        {P: 1.0},
        "Invalid quota entity combination, IP entity should not be combined with User or ClientId",
    ),
    "an unknown key": (ALICE, {"x": 1.0}, "Invalid configuration key x"),
    "an address's key for a user": (
        ALICE,
        {RATE: 1.0},
        f"Invalid configuration key {RATE}",
    ),
    "a user's key for an address": ({"ip": "1.2.3.4"}, {P: 1.0}, f"Invalid configuration key {P}"),
    "nothing": (ALICE, {P: 0.0}, f"Quota {P} must be greater than 0"),
    "less than nothing": (ALICE, {P: -1.0}, f"Quota {P} must be greater than 0"),
    "what is no number": (ALICE, {P: nan}, f"Quota {P} must be a finite number"),
    "infinity": (ALICE, {P: inf}, f"Quota {P} must be a finite number"),
    "part of a byte": (ALICE, {P: 1.5}, f"{P} cannot be a fractional value."),
    "more than a long": (ALICE, {P: 9.3e18}, f"Proposed value for {P} is too large for a LONG."),
    "more than an int": (
        {"ip": None},
        {RATE: 5e9},
        f"Proposed value for {RATE} is too large for an INT.",
    ),
    "part of a connection": ({"ip": None}, {RATE: 0.5}, f"{RATE} cannot be a fractional value."),
    "an address that is none": ({"ip": "1.2.3"}, {RATE: 5.0}, "1.2.3 is not a valid IP or resolvable host."),
    "a name of a host": (
        {"ip": "broker.example"},
        {RATE: 5.0},
        "broker.example is not a valid IP or resolvable host.",
    ),
    "no request time": (ALICE, {"request_percentage": 0.0}, "Quota request_percentage must be greater than 0"),
    "no number of mutations": (
        ALICE,
        {"controller_mutation_rate": nan},
        "Quota controller_mutation_rate must be a finite number",
    ),
    "one of two": (ALICE, {P: 1.0, C: 0.5}, f"{C} cannot be a fractional value."),
}


@pytest.mark.parametrize(("entity", "changes", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_may_not_be_set(entity: Entity, changes: dict[str, float | None], problem: str) -> None:
    assert quotas_of()[0].refusal(entity, changes) == problem


def test_a_quota_holds_for_its_key_alone_until_it_is_removed() -> None:
    quotas, managers = quotas_of(gold=400.0)
    quotas.alter({"client-id": "gold"}, {P: 7.0})
    assert [limit_of(managers[key], "ANONYMOUS", "gold") for key in (P, C)] == [7.0, 400.0]
    quotas.alter({"client-id": "gold"}, {P: None})
    assert limit_of(managers[P], "ANONYMOUS", "gold") == 400.0
    assert quotas.matching({}, [], strict=False) == []


def test_quotas_of_addresses_are_told_in_one_way_of_writing() -> None:
    assert addresses_of(
        ({"ip": "localhost"}, 1.0),
        ({"ip": "0:0::1"}, 2.0),
        ({"ip": "::ffff:10.0.0.9"}, 3.0),
        ({"ip": None}, 4.0),
        ({"ip": "10.0.0.1"}, 5.0),
        ({"ip": "10.0.0.1"}, None),
    ) == {"127.0.0.1": 1.0, "::1": 2.0, "10.0.0.9": 3.0, DEFAULT: 4.0, "10.0.0.1": None}


def test_the_most_specific_quota_holds() -> None:
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


@pytest.mark.parametrize(
    ("exact", "specified", "strict", "found"),
    [
        pytest.param({}, [], False, [0, 1, 2, 3, 4], id="nothing asked for is everything"),
        pytest.param({}, [], True, [], id="nothing asked for, strictly, is nothing"),
        pytest.param(ALICE, [], False, [0, 1, 2], id="a user, whatever its client ids"),
        pytest.param(ALICE, [], True, [0], id="a user, strictly"),
        pytest.param({"user": None}, [], False, [3], id="the default user"),
        pytest.param({}, ["user"], False, [0, 1, 2, 3], id="any user, the default too"),
        pytest.param({}, ["user"], True, [0, 3], id="any user, strictly"),
        pytest.param({"user": "alice", "client-id": None}, [], True, [2], id="a user and the default client id"),
        pytest.param({"client-id": "c"}, ["user"], True, [1], id="any user of a client id"),
        pytest.param({"user": "bob"}, [], False, [], id="a user without quotas"),
        pytest.param({}, ["ip"], False, [], id="any address"),
    ],
)
def test_entities_match_as_they_were_set(exact: Entity, specified: list[str], strict: bool, found: list[int]) -> None:
    quotas, _ = quotas_of()
    for number, entity in enumerate(SET, start=1):
        quotas.alter(entity, {P: float(number)})
    matching = quotas.matching(exact, specified, strict=strict)
    assert matching == [(SET[index], {P: float(index + 1)}) for index in found]
