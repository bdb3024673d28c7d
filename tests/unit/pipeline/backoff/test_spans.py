"""Spans: what of a host's events is kept, and when that is over."""

import pytest

from sluice.journal_events import ConnectionClosed, ConnectionOpened, Request
from sluice.pipeline.backoff.spans import KINDS, Host, HostEvent, Limits, by_time, is_failure
from tests.support.fleet import NOON_NS, HostJournal, fleet

S = 1_000_000_000
LIMITS = Limits(quiet_ns=10 * S, longest_ns=100 * S)


def events_of(journal: HostJournal) -> list[HostEvent]:
    return sorted((event for event in journal.events if isinstance(event, KINDS)), key=by_time)


def spans(events: list[HostEvent], limits: Limits = LIMITS) -> list[list[HostEvent]]:
    kept = Host()
    found = [kept.take(event, limits) for event in events]
    return [span for span in [*found, kept.end()] if span]


def shop() -> HostJournal:
    return HostJournal("10.0.0.1", "shop", 1)


def test_what_is_right_all_along_is_no_span_and_is_not_kept() -> None:
    journal = shop()
    connection = journal.opened(0)
    for number in range(1000):
        journal.request(connection, 10 + number, "Produce", sequence=number)
    kept = Host()
    assert [span for event in events_of(journal) if (span := kept.take(event, LIMITS))] == []
    assert sum(map(len, kept.open.values())) == 2, "the connection's beginning, and its first Produce"
    journal.closed(connection, 2000, by_client=True)
    kept.take(events_of(journal)[-1], LIMITS)
    assert kept == Host()


def test_a_span_is_what_failed_what_came_of_it_and_what_was_open() -> None:
    journal = shop()
    connection = journal.opened(0)
    journal.request(connection, 1, "ApiVersions")
    for number in range(50):
        journal.request(connection, 10 + 10 * number, "Produce", sequence=number)
    journal.request(connection, 1000, "Produce", sequence=50, errors=(6,))
    journal.request(connection, 1050, "Produce", sequence=51)
    journal.request(connection, 1100, "Produce", sequence=50)
    journal.request(connection, 1200, "Produce", sequence=52)
    (span,) = spans(events_of(journal))
    kinds = [(type(event).__name__, getattr(event, "attempt_key", "").rpartition(".")[2]) for event in span]
    assert kinds == [("ConnectionOpened", ""), ("Request", ""), ("Request", "0"), ("Request", "50"), ("Request", "50")]


@pytest.mark.parametrize(
    ("second_ms", "count"), [(10_900, 1), (11_100, 2)], ids=["within the quiet time", "after the quiet time"]
)
def test_failures_belong_together_until_it_is_quiet(second_ms: float, count: int) -> None:
    journal = shop()
    connection = journal.opened(0)
    journal.request(connection, 1000, "Metadata", errors=(5,))
    journal.request(connection, second_ms, "Metadata", errors=(5,))
    assert len(spans(events_of(journal))) == count


def test_what_never_ends_is_cut() -> None:
    journal = shop()
    connection = journal.opened(0)
    for second in range(250):
        journal.request(connection, 1000.0 * second, "Metadata", errors=(5,))
    failures = [sum(map(is_failure, span)) for span in spans(events_of(journal))]
    assert failures == [101, 101, 48], "and none is in two of them"


def test_time_alone_ends_a_span() -> None:
    journal = shop()
    connection = journal.opened(0)
    journal.request(connection, 1000, "Metadata", errors=(5,))
    kept = Host()
    for event in events_of(journal):
        kept.take(event, LIMITS)
    ends_ns = kept.ends_ns(LIMITS)
    assert ends_ns == NOON_NS + 11 * S + 4_000_000  # the answer took 4 ms
    assert kept.ended_by(ends_ns, LIMITS) == []
    assert kept.ended_by(ends_ns + 1, LIMITS)
    assert kept.span == []


def test_what_a_client_ends_itself_is_no_failure() -> None:
    journal = shop()
    first, second = journal.opened(0), journal.opened(1)
    journal.closed(first, 10, by_client=True)
    journal.closed(second, 20)
    assert [is_failure(event) for event in events_of(journal)] == [False, False, False, True]


def test_of_a_fleet_little_is_kept() -> None:
    """What is right is not: four fifths of this journal, and of one of a fleet nearly all."""
    events = [event for event in fleet(4) if isinstance(event, ConnectionOpened | ConnectionClosed | Request)]
    hosts: dict[str, list[HostEvent]] = {}
    for event in events:
        hosts.setdefault(event.peer.rpartition(":")[0], []).append(event)
    kept = [span for of_host in hosts.values() for span in spans(of_host, Limits())]
    assert len(kept) == 8
    assert sum(map(len, kept)) < len(events) / 5
