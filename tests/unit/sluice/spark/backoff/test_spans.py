"""Failure spans: which events of a host they keep, and when they end."""

import pytest

from sluice.journal_events import ConnectionClosed, ConnectionOpened, Request
from sluice.spark.backoff.spans import KINDS, Host, HostEvent, Limits, by_time, is_failure
from tests.support.fleet import NOON_NS, HostJournal, fleet

S = 1_000_000_000
LIMITS = Limits(quiet_ns=10 * S, longest_ns=100 * S)


def events_of(journal: HostJournal) -> list[HostEvent]:
    return sorted((event for event in journal.events if isinstance(event, KINDS)), key=by_time)


def spans(events: list[HostEvent], limits: Limits = LIMITS) -> list[list[HostEvent]]:
    kept = Host()
    found = [kept.take(event, limits) for event in events]
    return [span for span in [*found, kept.end()] if span]


@pytest.fixture
def journal() -> HostJournal:
    return HostJournal("10.0.0.1", "shop", 1)


def test_successful_requests_start_no_span_and_are_not_kept(journal: HostJournal) -> None:
    connection = journal.opened(0)
    for number in range(1000):
        journal.request(connection, 10 + number, "Produce", sequence=number)
    kept = Host()
    assert [span for event in events_of(journal) if (span := kept.take(event, LIMITS))] == []
    assert sum(map(len, kept.open.values())) == 2, "the opening of the connection, and its first Produce"
    journal.closed(connection, 2000, by_client=True)
    kept.take(events_of(journal)[-1], LIMITS)
    assert kept == Host()


def test_a_span_has_the_failures_the_first_successes_and_the_open_connections(journal: HostJournal) -> None:
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


SPANS = {"within the quiet time": (10_900, 1), "after the quiet time": (11_100, 2)}


@pytest.mark.parametrize(("second_ms", "count"), SPANS.values(), ids=SPANS)
def test_a_span_ends_after_a_time_without_failures(journal: HostJournal, second_ms: float, count: int) -> None:
    connection = journal.opened(0)
    journal.request(connection, 1000, "Metadata", errors=(5,))
    journal.request(connection, second_ms, "Metadata", errors=(5,))
    assert len(spans(events_of(journal))) == count


def test_a_span_has_a_longest_duration(journal: HostJournal) -> None:
    connection = journal.opened(0)
    for second in range(250):
        journal.request(connection, 1000.0 * second, "Metadata", errors=(5,))
    failures = [sum(map(is_failure, span)) for span in spans(events_of(journal))]
    assert failures == [101, 101, 48], "each failure is in one span"


def test_a_span_ends_without_further_events(journal: HostJournal) -> None:
    connection = journal.opened(0)
    journal.request(connection, 1000, "Metadata", errors=(5,))
    kept = Host()
    for event in events_of(journal):
        kept.take(event, LIMITS)
    ends_ns = kept.ends_ns(LIMITS)
    assert ends_ns == NOON_NS + 11 * S + 4_000_000  # the response took 4 ms
    assert kept.ended_by(ends_ns, LIMITS) == []
    assert kept.ended_by(ends_ns + 1, LIMITS)
    assert kept.span == []


def test_a_connection_that_the_client_closes_is_no_failure(journal: HostJournal) -> None:
    first, second = journal.opened(0), journal.opened(1)
    journal.closed(first, 10, by_client=True)
    journal.closed(second, 20)
    assert [is_failure(event) for event in events_of(journal)] == [False, False, False, True]


def test_most_events_of_a_fleet_are_not_kept() -> None:
    """Successes are four fifths of this journal, and nearly all of a real fleet's."""
    events = [event for event in fleet(4) if isinstance(event, ConnectionOpened | ConnectionClosed | Request)]
    hosts: dict[str, list[HostEvent]] = {}
    for event in events:
        hosts.setdefault(event.peer.rpartition(":")[0], []).append(event)
    kept = [span for of_host in hosts.values() for span in spans(of_host, Limits())]
    assert len(kept) == 8
    assert sum(map(len, kept)) < len(events) / 5
