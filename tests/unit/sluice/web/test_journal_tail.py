"""The newest journal events, and the number of omitted ones."""

from sluice.broker.journal.reader import EventFilter, parse_event_filter
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from sluice.web.journal_tail import Lines, newest
from tests.support.records import produce, produce_of
from tests.support.virtual_broker import JOURNAL, VirtualBroker


def _read(broker: VirtualBroker, after: int = 0, **filters: str) -> Lines:
    assert broker.cluster.journal is not None
    wanted = parse_event_filter({name: [value] for name, value in filters.items()}) if filters else EventFilter()
    return newest(broker.cluster.journal, wanted, after)


def test_lines_have_the_format_of_the_command() -> None:
    broker = VirtualBroker(JOURNAL)
    broker.client("shop").call(MetadataRequest(), 9)
    opened, request = _read(broker).lines
    assert (opened.seq, opened.kind, opened.connection, opened.client_id) == (1, "connection-opened", 1, "")
    assert opened.what.startswith("connected from 127.0.0.1:")
    assert (request.seq, request.client_id) == (2, "shop")
    assert request.what.startswith("Metadata v9 (1), ")


def test_later_reads_return_new_events() -> None:
    broker = VirtualBroker(JOURNAL)
    client = broker.client("shop")
    after = _read(broker).after
    client.call(MetadataRequest(), 9)
    found = _read(broker, after)
    assert [line.seq for line in found.lines] == [2]
    assert _read(broker, found.after).lines == []


def test_only_the_newest_of_many_are_returned_and_the_others_counted() -> None:
    broker = VirtualBroker(JOURNAL)
    client = broker.client("shop")
    for _ in range(80):
        client.call(MetadataRequest(), 9)
    found = _read(broker)
    assert ([line.seq for line in found.lines], found.left_off) == ([*range(32, 82)], 31)
    assert _read(broker, kind="request").left_off == 30
    assert _read(broker, after=61, kind="request").left_off == 0


def test_overwritten_events_are_skipped() -> None:
    broker = VirtualBroker("sluice.journal.events=4")
    client = broker.client("shop")
    for _ in range(10):
        client.call(MetadataRequest(), 9)
    assert [line.seq for line in _read(broker).lines] == [8, 9, 10, 11]


def test_lines_have_a_tone() -> None:
    broker = VirtualBroker(JOURNAL, "quota.producer.default=1000")
    broker.topic()
    broker.cluster_server.faults.add({"action": {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"}, "times": 1})
    client = broker.client("shop")
    client.call(produce(9), 9)
    client.call(produce(9, partition=7), 9)
    client.send(produce_of(50_000, 9, "shop"), 9)
    broker.advance(60_000)
    tones = [(line.kind, line.tone) for line in _read(broker, client_id="shop").lines]
    assert tones == [
        ("fault", "fault"),
        ("request", "fault"),
        ("request", "error"),
        ("throttle", "wait"),
        ("request", "wait"),
    ]
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.name in _read(broker).lines[3].what
