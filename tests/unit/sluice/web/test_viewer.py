"""Messages to a viewer: first everything, then changes."""

import msgspec
import pytest
from msgspec import UnsetType

from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.web.feed import Feed
from sluice.web.message import Message
from sluice.web.view import View
from tests.support.records import produce_of
from tests.support.virtual_broker import JOURNAL, WALL_START_MS, VirtualBroker
from tests.support.watching import watching

EVERYTHING = View(connections=True, journal=True)


def test_the_first_message_has_everything_and_one_without_changes_nothing() -> None:
    broker = VirtualBroker(JOURNAL)
    broker.client("shop").call(MetadataRequest(), 9)
    with watching(broker, View(journal=True)) as watcher:
        first = watcher.message()
        assert first.keys() == {"look", "at_ms", "cluster", "brokers", "clients", "quotas", "faults", "journal"}
        assert (first["look"], first["at_ms"]) == (0, WALL_START_MS)
        watcher.later()  # requests per second are 0 again
        assert watcher.later() == {}


@pytest.mark.parametrize("part", ["connections", "journal"])
def test_parts_that_are_not_requested_are_not_sent(part: str) -> None:
    broker = VirtualBroker(JOURNAL)
    broker.client("shop").call(MetadataRequest(), 9)
    with watching(broker) as watcher:
        assert part not in watcher.message()
    with watching(broker, EVERYTHING) as watcher:
        assert part in watcher.message()


def test_without_a_journal_no_lines_are_sent() -> None:
    with watching(VirtualBroker(), EVERYTHING) as watcher:
        message = watcher.message()
    assert (message["cluster"]["journal_size"], "journal" in message) == (0, False)


def test_only_changed_clients_are_sent() -> None:
    broker = VirtualBroker()
    for name in ("a", "b"):
        broker.client(name).call(MetadataRequest(), 9)
    with watching(broker, View(sort="name")) as watcher:
        assert len(watcher.message()["clients"]["rows"]) == 2
        broker.client("b").call(MetadataRequest(), 9)
        (row,) = watcher.later()["clients"]["rows"]
    assert (row["client_id"], row["connections"]) == ("b", 2)


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "'\"`;--",
    "a\nevent: fake\ndata: {}\n\n",
    "\x00\x1b[31m\x7f",
    "\u202egnp.exe",
    "\U0001f300" * 40,
    "x" * 20_000,
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_any_client_id_is_one_string_without_line_ends(name: str) -> None:
    broker = VirtualBroker(JOURNAL)
    client = broker.client(name)
    client.call(ApiVersionsRequest(client_software_name="a-b", client_software_version="1"), 3)
    client.call(MetadataRequest(), 9)
    with watching(broker, EVERYTHING) as watcher:
        broker.settle()
        message = watcher.message()
    (row,) = message["clients"]["rows"]
    (connection,) = message["connections"]["rows"]
    assert row["client_id"] == connection["client_id"] == message["journal"]["lines"][-1]["client_id"] == name


def test_a_message_matches_the_openapi_document() -> None:
    broker = VirtualBroker(JOURNAL, "quota.producer.default=1000")
    broker.topic()
    broker.cluster_server.faults.add({"action": "close", "api": "Fetch"})
    broker.client("shop").send(produce_of(12_000, 9, "shop"), 9)
    with watching(broker, EVERYTHING) as watcher:
        message = watcher.message()
        read = msgspec.convert(message, Message)
        assert message.keys() == set(Message.__struct_fields__)
        assert msgspec.json.decode(msgspec.json.encode(read)) == message
        assert not isinstance(read.clients, UnsetType)
        assert read.clients.points


def test_a_message_has_no_line_ends() -> None:
    """A line end would end the server-sent event."""
    broker = VirtualBroker(JOURNAL)
    broker.client("a\n\ndata: {}\r\u2028").call(MetadataRequest(), 9)
    feed = Feed(broker.cluster_server)
    with feed.watching(EVERYTHING) as viewer:
        broker.settle()
        assert feed.newest is not None
        message = viewer.message(feed.newest)
    assert b"\n" not in message
    assert b"\r" not in message
