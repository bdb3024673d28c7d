"""Lanes and their order."""

from sluice.journal_events import ClientEvent
from sluice.trace.lanes import Lanes, LaneTable
from tests.support.journals import Journal


def events() -> list[ClientEvent]:
    journal = Journal(client_id="shop", software=("lib", "1.2"))
    journal.connection(0)
    journal.request("Metadata", 1, 2)
    return [event for event in journal.events if isinstance(event, ClientEvent)]


def test_a_connection_has_the_client_id_of_its_first_request() -> None:
    table = LaneTable()
    lanes = Lanes(table, "")
    opened, request = events()
    index = lanes.connection(opened)
    assert (table.lanes[index].owner, table.lanes[index].detail) == ("", "10.0.0.1:40001, PLAINTEXT")
    assert lanes.connection(request) == index
    lane = table.lanes[index]
    assert (lane.id, lane.group, lane.owner, lane.label) == ("connection-1", "client", "shop", "#1 to broker 1")
    assert lane.detail == "10.0.0.1:40001, lib 1.2, PLAINTEXT"


def test_lanes_are_sorted_by_group_owner_and_number() -> None:
    table = LaneTable()
    lanes = Lanes(table, "")
    for topic, partition in (("b", 10), ("b", 2), ("a", 3)):
        lanes.partition(topic, partition)
    lanes.broker(10)
    lanes.broker(9)
    lanes.transaction("tx")
    lanes.group("g")
    lanes.rule("r")
    lanes.quotas()
    lanes.scenario("s")
    lanes.journal()
    moved = table.sort()
    labels = ["scenario s", "journal", "rule r", "quotas", "g", "tx", "a-3", "b-2", "b-10", "broker 9", "broker 10"]
    assert [lane.label for lane in table.lanes] == labels
    assert table.lanes[moved[0]].label == "b-10"


def test_relations_are_mutual_and_follow_the_order() -> None:
    table = LaneTable()
    lanes = Lanes(table, "")
    broker, group = lanes.broker(1), lanes.group("g")
    table.relate(broker, group)
    table.sort()
    assert [lane.relates for lane in table.lanes] == [[1], [0]]


def test_clusters_have_lanes_of_their_own() -> None:
    table = LaneTable()
    for label in ("one", "two"):
        Lanes(table, label).broker(1)
    assert [(lane.id, lane.label) for lane in table.lanes] == [
        ("one broker-1", "one: broker 1"),
        ("two broker-1", "two: broker 1"),
    ]
