"""The journal reader: filters, start positions, limits, and gaps for lost events."""

import asyncio
import re
from typing import Any

import pytest

from sluice.broker.journal.journal import Journal
from sluice.broker.journal.reader import API_NAMES, EventFilter, JournalReader, parse_event_filter
from sluice.clock import LoopClock, ManualClock
from sluice.errors import ArgumentError
from sluice.journal_events import KINDS, BrokerState, Gap, Request
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import fetch, produce
from tests.support.virtual_broker import JOURNAL, broker_with_topic


def journal_with_events(size: int, count: int) -> JournalReader:
    """Return a journal of `size` with `count` events of brokers 1 and 2 in turn."""
    clock = ManualClock()
    journal = Journal(size, clock, {})
    for number in range(count):
        journal.add_cluster_event("broker-state", 1 + number % 2, state=str(number + 1))
    return JournalReader(journal, clock)


def seqs(reader: JournalReader, **filters: Any) -> list[int]:
    return [event.seq for event in reader.events(**filters)]


READS = {
    "all events": (10, 4, {}, [1, 2, 3, 4]),
    "after an event": (10, 4, {"after": 2}, [3, 4]),
    "after the last event": (10, 4, {"after": 4}, []),
    "after a future event": (10, 4, {"after": 99}, []),
    "of one broker": (10, 4, {"broker": 2}, [2, 4]),
    "of several brokers": (10, 4, {"broker": [1, 2]}, [1, 2, 3, 4]),
    "of a kind without events": (10, 4, {"kind": "request"}, []),
    "of several kinds": (10, 4, {"kind": ["request", "broker-state"]}, [1, 2, 3, 4]),
    "of an unknown client": (10, 4, {"client_id": "x"}, []),
    "full ring without lost events": (4, 4, {}, [1, 2, 3, 4]),
    "empty journal": (4, 0, {}, []),
}


@pytest.mark.parametrize(("size", "count", "filters", "expected"), READS.values(), ids=READS)
def test_events_are_filtered(size: int, count: int, filters: dict[str, Any], expected: list[int]) -> None:
    assert seqs(journal_with_events(size, count), **filters) == expected


GAPS = {"read from the beginning": (0, 6), "read after a lost event": (4, 2)}


@pytest.mark.parametrize(("after", "lost"), GAPS.values(), ids=GAPS)
def test_gap_has_the_number_of_lost_events(after: int, lost: int) -> None:
    reader = journal_with_events(4, 10)
    gap, *rest = reader.events(after=after, kind="broker-state")
    assert gap == Gap(seq=6, at_ns=gap.at_ns, broker=-1, lost=lost)
    assert [event.seq for event in rest] == [7, 8, 9, 10]
    assert seqs(reader, after=6) == [7, 8, 9, 10], "no gap after the last lost event"


@pytest.mark.parametrize("size", [1, 3, 8, 64])
def test_growing_ring_keeps_the_newest_events(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.broker.journal.journal._FIRST_ENTRIES", 2)
    for count in range(24):
        reader = journal_with_events(size, count)
        assert seqs(reader, after=max(0, count - size)) == list(range(max(0, count - size) + 1, count + 1))


def test_read_stops_at_its_limit_and_continues_from_there() -> None:
    reader = journal_with_events(10, 7)
    first = reader.read(0, EventFilter(brokers=[1]), 2)
    assert ([event.seq for event in first.events], first.after) == ([1, 3], 3)
    second = reader.read(first.after, EventFilter(brokers=[1]), 2)
    assert ([event.seq for event in second.events], second.after) == ([5, 7], 7)


POSITIONS = {"fewer than available": (2, 4), "more than available": (9, 3), "none": (0, 7)}


@pytest.mark.parametrize(("count", "after"), POSITIONS.values(), ids=POSITIONS)
def test_before_last_returns_the_position_of_the_last_events(count: int, after: int) -> None:
    assert journal_with_events(4, 7).before_last(count, EventFilter(brokers=[1])) == after


def test_requests_are_filtered_by_client_and_api() -> None:
    broker = broker_with_topic(JOURNAL)
    for name in ("a", "b"):
        client = broker.client(name)
        client.call(MetadataRequest(), 9)
        client.call(produce(9), 9)
    reader = broker.journal
    assert [(event.client_id, event.api) for event in reader.requests()] == [
        ("a", "Metadata"),
        ("a", "Produce"),
        ("b", "Metadata"),
        ("b", "Produce"),
    ]
    assert [event.client_id for event in reader.requests(api="Produce")] == ["a", "b"]
    first, _ = reader.requests(api="Produce")
    assert [event.client_id for event in reader.requests(api="Produce", after=first.seq, broker=1)] == ["b"]
    (only,) = reader.requests(client_id="b", api=["Produce", "Fetch"])
    assert isinstance(only, Request)


def test_received_are_the_times_of_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.broker.journal.journal._FIRST_ENTRIES", 1)  # the ring grows
    broker = broker_with_topic(JOURNAL)
    waiting, other = broker.client("waiting"), broker.client("other")
    waiting.send(fetch(max_wait_ms=500, min_bytes=1), 4)
    broker.advance(100)
    other.call(MetadataRequest(), 9)
    broker.advance(1000)
    other.call(produce(9), 9)
    reader = broker.journal
    requests = reader.requests()
    assert [event.api for event in requests] == ["Metadata", "Fetch", "Produce"]
    assert list(reader.received()) == [(event.api, event.received_ns) for event in requests]
    assert list(reader.received(after=requests[1].seq)) == [("Produce", requests[2].received_ns)]


WRONG = {
    "an unknown filter": ({"colour": ["red"]}, "colour: unknown filter; expected one of client_id, api, kind, broker"),
    "an unknown kind": ({"kind": ["dream"]}, f"kind: expected one of {', '.join(KINDS)}, got dream"),
    "an unknown API": (
        {"api": ["Produce", "produce"]},
        f"api: expected one of {', '.join(API_NAMES)}, got produce. Did you mean Produce?",
    ),
    "a broker id that is not a number": ({"broker": ["one"]}, "broker: expected a node id, got one"),
}


@pytest.mark.parametrize(("given", "problem"), WRONG.values(), ids=WRONG)
def test_invalid_filter_is_rejected(given: dict[str, list[str]], problem: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{re.escape(problem)}$"):
        parse_event_filter(given)


def test_follow_returns_new_events_and_a_gap_for_lost_ones() -> None:
    async def follow() -> list[tuple[type, int]]:
        clock = LoopClock(asyncio.get_running_loop())
        journal = Journal(4, clock, {})
        reader = JournalReader(journal, clock)

        def add_events(count: int) -> None:
            for _ in range(count):
                journal.add_cluster_event("broker-state", 1, state="running")

        add_events(1)
        received: list[tuple[type, int]] = []
        following = reader.follow(kind="broker-state")
        first = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        add_events(1)
        received.append((type(event := await first), event.seq))
        add_events(10)  # six more than the journal can contain
        async for event in following:
            received.append((type(event), event.seq))
            if event.seq == 12:
                break
        await following.aclose()  # type: ignore[attr-defined]  # it is a generator
        return received

    assert asyncio.run(follow()) == [(BrokerState, 2), (Gap, 8), *((BrokerState, seq) for seq in (9, 10, 11, 12))]
