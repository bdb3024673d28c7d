"""The clients on the page: their rows, order, search, and the number read per snapshot."""

from typing import Any

import pytest

from sluice.protocol.apis.metadata import MetadataRequest
from sluice.web.client_row import POINTS
from sluice.web.clients import SORTS, Clients, Sort
from sluice.web.view import View
from tests.support.records import produce_of
from tests.support.virtual_broker import Client, VirtualBroker
from tests.support.watching import watching

QUOTA = "quota.producer.default=1M"


def _produce(client: Client, size: int) -> None:
    client.send(produce_of(size, 9, client.client_id), 9)


def _ids(message: Any) -> list[str]:
    by_id = {row["id"]: row["client_id"] for row in message["clients"]["rows"]}
    return [by_id[number] for number in message["clients"]["order"]]


def _clients(*ids: str, overrides: tuple[str, ...] = (QUOTA,)) -> tuple[VirtualBroker, list[Client]]:
    broker = VirtualBroker(*overrides)
    broker.topic()
    return broker, [broker.client(each) for each in ids]


def test_a_client_is_shown_from_its_first_request() -> None:
    broker, (client,) = _clients("shop")
    with watching(broker) as watcher:
        assert watcher.message()["clients"]["total"] == 0, "the client is not known before its first request"
        client.call(MetadataRequest(), 9)
        (row,) = watcher.later()["clients"]["rows"]
    assert (row["client_id"], row["user"], row["connections"], row["meters"]) == ("shop", "ANONYMOUS", 1, [])


def test_a_client_without_usage_is_shown_with_the_quotas_that_would_apply() -> None:
    broker, (client,) = _clients("shop")
    client.call(MetadataRequest(), 9)
    with watching(broker) as watcher:
        (row,) = watcher.message()["clients"]["rows"]
        default = {"kind": "Produce", "bound": 1e6, "user": None, "client_id": "shop"}
        assert (row["meters"], row["limits"]) == ([], [default])
        broker.cluster.client_quotas.alter({"client-id": "shop"}, {"consumer_byte_rate": 5.0})
        _produce(client, 1000)
        (row,) = watcher.later()["clients"]["rows"]
    assert [one["kind"] for one in row["meters"]] == ["Produce"]
    assert row["limits"] == [{"kind": "Fetch", "bound": 5.0, "user": None, "client_id": "shop"}]


def test_connections_of_one_client_are_one_row() -> None:
    broker, clients = _clients("shop", "shop", "other")
    for client in clients:
        client.call(MetadataRequest(), 9)
    with watching(broker) as watcher:
        rows = watcher.message()["clients"]["rows"]
    assert {row["client_id"]: row["connections"] for row in rows} == {"shop": 2, "other": 1}


def test_a_client_is_shown_with_its_quota_and_throttle_time() -> None:
    broker, (client,) = _clients("shop")
    _produce(client, 12_000_000)
    with watching(broker) as watcher:
        (row,) = watcher.message()["clients"]["rows"]
    (meter,) = row["meters"]
    assert (meter["kind"], meter["rate"], meter["bound"]) == ("Produce", 1_200_000.0, 1_000_000.0)
    assert (meter["throttle_ms"], row["waiting"]) == (2000, 1)


def test_charges_between_two_snapshots_are_a_point() -> None:
    broker, (client,) = _clients("shop")
    _produce(client, 1000)
    with watching(broker) as watcher:
        watcher.message()
        _produce(client, 50_000)
        found = watcher.later()
        (points,) = found["clients"]["points"].values()
        assert points == [[found["look"], 100_000, 0]], "50,000 bytes in half a second"
        quiet = watcher.later()
    assert "clients" not in quiet or quiet["clients"]["points"] == {}, "an idle client has no points"


def test_a_client_that_disconnected_before_the_first_snapshot_is_shown() -> None:
    broker, (client,) = _clients("shop")
    _produce(client, 1000)
    client.leave()
    with watching(broker) as watcher:
        (row,) = watcher.message()["clients"]["rows"]
    assert (row["client_id"], row["connections"], len(row["meters"])) == ("shop", 0, 1)


ORDERS = {
    "activity": ["busy", "calm", "idle"],
    "quota": ["calm", "busy", "idle"],
    "throttled": ["calm", "busy", "idle"],
    "name": ["busy", "calm", "idle"],
}


def test_each_order_has_a_test() -> None:
    assert ORDERS.keys() == SORTS.keys()


@pytest.mark.parametrize(("sort", "order"), ORDERS.items(), ids=ORDERS)
def test_clients_are_sorted(sort: Sort, order: list[str]) -> None:
    broker, (idle, calm, busy) = _clients(
        "idle", "calm", "busy", overrides=("quota.producer.override=busy:9M,calm:1k",)
    )
    idle.call(MetadataRequest(), 9)
    _produce(busy, 1_000_000)
    _produce(calm, 100_000)
    with watching(broker, View(sort=sort)) as watcher:
        watcher.message()
        client = broker.client("busy")  # the next snapshot sorts by the values that this one reads
        client.call(MetadataRequest(), 9)
        message = watcher.later()
    assert [{1: "idle", 2: "calm", 3: "busy"}[number] for number in message["clients"]["order"]] == order


SEARCHES = {
    "an empty search finds all": ("", ["Ärger", "a", "b"]),
    "the search ignores case": ("ÄR", ["Ärger"]),
    "a user": ("anonymous", ["Ärger", "a", "b"]),
    "no match": ("zz", []),
}


@pytest.mark.parametrize(("search", "found"), SEARCHES.values(), ids=SEARCHES)
def test_clients_are_searched(search: str, found: list[str]) -> None:
    broker, clients = _clients("a", "b", "Ärger")
    for client in clients:
        client.call(MetadataRequest(), 9)
    with watching(broker, View(search=search, sort="name")) as watcher:
        message = watcher.message()
    assert sorted(_ids(message)) == sorted(found)
    assert (message["clients"]["matched"], message["clients"]["total"]) == (len(found), 3)


def test_a_page_of_many_is_sent() -> None:
    broker, clients = _clients(*(f"c{number:02}" for number in range(30)))
    for client in clients:
        client.call(MetadataRequest(), 9)
    with watching(broker, View(sort="name", page=2, size=10)) as watcher:
        message = watcher.message()
    assert _ids(message) == [f"c{number}" for number in range(20, 30)]
    assert message["clients"]["matched"] == 30


def test_each_snapshot_reads_a_few_clients_and_later_ones_the_others() -> None:
    broker, clients = _clients(*(f"c{number:03}" for number in range(100)))
    found = Clients(broker.cluster_server)
    found.find(0)
    found.read(0, ())
    reads: list[int] = []
    for snapshot in range(1, 6):
        for client in clients:
            _produce(client, 1000)
        broker.advance(500)
        found.find(snapshot)
        found.read(snapshot, ())
        reads.append(sum(row.snapshot_number == snapshot for row in found.found("", "name")))
    assert max(reads) <= 25
    assert {row.snapshot_number for row in found.found("", "name")} == {2, 3, 4, 5}, "the least recently read are first"


def test_the_number_of_disconnected_clients_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.web.clients._MOST_GONE", 3)
    broker, _ = _clients()
    found = Clients(broker.cluster_server)
    for number in range(6):
        client = broker.client(f"c{number}")
        client.call(MetadataRequest(), 9)
        found.find(1)
        client.leave()
        broker.advance(10)
    found.find(10)
    assert [row.client_id for row in found.found("", "name")] == ["c3", "c4", "c5"]


def test_points_cover_the_last_two_minutes() -> None:
    broker, (client,) = _clients("shop")
    _produce(client, 1000)
    with watching(broker) as watcher:
        watcher.message()
        for _ in range(POINTS + 20):
            _produce(client, 1000)
            broker.advance(500)
        (points,) = watcher.message()["clients"]["points"].values()
    assert len(points) == POINTS
