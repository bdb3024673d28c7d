"""Reading the journal: filters, where to begin, and what is said of events that are no longer there."""

import asyncio
import re
from typing import Any

import pytest

from sluice.broker.journal.journal import Journal
from sluice.broker.journal.reader import API_NAMES, EventFilter, JournalReader, parse_event_filter
from sluice.clock import LoopClock, ManualClock
from sluice.journal_events import KINDS, BrokerState, Gap, Request
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.records import produce
from tests.support.virtual_broker import JOURNAL, VirtualBroker


def noted(size: int, count: int) -> JournalReader:
    """A journal of that size in which so many things were noted, by brokers 1, 2, 1, 2 and so on."""
    clock = ManualClock()
    journal = Journal(size, clock, {})
    for number in range(count):
        journal.add_cluster_event("broker-state", 1 + number % 2, state=str(number + 1))
    return JournalReader(journal, clock)


def seqs(reader: JournalReader, **filters: Any) -> list[int]:
    return [one.seq for one in reader.events(**filters)]


READS = {
    "all that is there": (10, 4, {}, [1, 2, 3, 4]),
    "what is after an event": (10, 4, {"after": 2}, [3, 4]),
    "nothing after the last": (10, 4, {"after": 4}, []),
    "nothing after one that is to come": (10, 4, {"after": 99}, []),
    "of one broker": (10, 4, {"broker": 2}, [2, 4]),
    "of several brokers": (10, 4, {"broker": [1, 2]}, [1, 2, 3, 4]),
    "of a kind that did not happen": (10, 4, {"kind": "request"}, []),
    "of several kinds": (10, 4, {"kind": ["request", "broker-state"]}, [1, 2, 3, 4]),
    "of a client that no event has": (10, 4, {"client_id": "x"}, []),
    "a full ring without a loss": (4, 4, {}, [1, 2, 3, 4]),
    "from an empty journal": (4, 0, {}, []),
}


@pytest.mark.parametrize(("size", "count", "filters", "expected"), READS.values(), ids=READS)
def test_events_are_read(size: int, count: int, filters: dict[str, Any], expected: list[int]) -> None:
    assert seqs(noted(size, count), **filters) == expected


@pytest.mark.parametrize(
    ("after", "lost"),
    [
        pytest.param(0, 6, id="of all, by who reads from the beginning"),
        pytest.param(4, 2, id="of some, by who has read others"),
    ],
)
def test_a_reader_is_told_how_many_events_were_lost(after: int, lost: int) -> None:
    reader = noted(4, 10)
    gap, *rest = reader.events(after=after, kind="broker-state")
    assert gap == Gap(seq=6, at_ns=gap.at_ns, broker=-1, lost=lost)
    assert [one.seq for one in rest] == [7, 8, 9, 10]
    assert seqs(reader, after=6) == [7, 8, 9, 10], "nothing was lost to who had read the last that is gone"


def test_a_read_stops_at_its_limit_and_goes_on_from_there() -> None:
    reader = noted(10, 7)
    first = reader.read(0, EventFilter(brokers=[1]), 2)
    assert ([one.seq for one in first.events], first.after) == ([1, 3], 3)
    second = reader.read(first.after, EventFilter(brokers=[1]), 2)
    assert ([one.seq for one in second.events], second.after) == ([5, 7], 7)


@pytest.mark.parametrize(
    ("count", "after"),
    [
        pytest.param(2, 4, id="as many as are wanted"),
        pytest.param(9, 3, id="no more than there are"),
        pytest.param(0, 7, id="none"),
    ],
)
def test_the_last_events_are_found_from_the_end(count: int, after: int) -> None:
    assert noted(4, 7).before_last(count, EventFilter(brokers=[1])) == after


def test_requests_are_found_by_client_and_api() -> None:
    broker = VirtualBroker(JOURNAL)
    broker.topic()
    for name in ("a", "b"):
        client = broker.client(name)
        client.ask(MetadataRequest(), 9)
        client.ask(produce(9), 9)
    assert broker.cluster.journal is not None
    reader = JournalReader(broker.cluster.journal, broker.clock)
    assert [(one.client_id, one.api) for one in reader.requests()] == [
        ("a", "Metadata"),
        ("a", "Produce"),
        ("b", "Metadata"),
        ("b", "Produce"),
    ]
    assert [one.client_id for one in reader.requests(api="Produce")] == ["a", "b"]
    first, _ = reader.requests(api="Produce")
    assert [one.client_id for one in reader.requests(api="Produce", after=first.seq, broker=1)] == ["b"]
    (only,) = reader.requests(client_id="b", api=["Produce", "Fetch"])
    assert isinstance(only, Request)


WRONG = {
    "an unknown filter": ({"colour": ["red"]}, "unknown filter colour; expected client_id, api, kind, broker"),
    "an unknown kind": ({"kind": ["dream"]}, f"kind=dream: must be one of {', '.join(KINDS)}"),
    "an unknown API": (
        {"api": ["Produce", "produce"]},
        f"api=produce: did you mean Produce? It must be one of {', '.join(API_NAMES)}",
    ),
    "a broker that is no number": ({"broker": ["one"]}, "broker=one: must be a node id"),
}


@pytest.mark.parametrize(("given", "problem"), WRONG.values(), ids=WRONG)
def test_what_no_event_can_be_is_refused(given: dict[str, list[str]], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        parse_event_filter(given)


def test_who_follows_gets_events_as_they_come_and_a_gap_for_what_was_lost() -> None:
    async def follow() -> list[tuple[type, int]]:
        clock = LoopClock(asyncio.get_running_loop())
        journal = Journal(4, clock, {})
        reader = JournalReader(journal, clock)

        def note(count: int) -> None:
            for _ in range(count):
                journal.add_cluster_event("broker-state", 1, state="running")

        note(1)
        got: list[tuple[type, int]] = []
        following = reader.follow(kind="broker-state")
        first = asyncio.ensure_future(anext(following))
        await asyncio.sleep(0)
        note(1)
        got.append((type(one := await first), one.seq))
        note(10)  # six more than there is room for
        async for one in following:
            got.append((type(one), one.seq))
            if one.seq == 12:
                break
        await following.aclose()  # type: ignore[attr-defined]  # it is a generator
        return got

    assert asyncio.run(follow()) == [
        (BrokerState, 2),
        (Gap, 8),
        *((BrokerState, seq) for seq in (9, 10, 11, 12)),
    ]
