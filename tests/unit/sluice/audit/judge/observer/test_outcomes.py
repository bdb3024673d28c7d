import pytest

from sluice.audit.judge.model.attempts import Outcome
from sluice.audit.judge.observer.outcomes import Outcomes
from sluice.journal_events import Request
from tests.support.journals import Journal, ns


def ends(journal: Journal) -> list[tuple[Outcome, bool]]:
    """Return the outcome of each request, and whether its end is known."""
    found = Outcomes(journal.events)
    attempts = [found.attempt(event) for event in journal.events if isinstance(event, Request)]
    return [(attempt.outcome, attempt.ended_ns is not None) for attempt in attempts]


GIVEN_UP, ANSWERED = (Outcome.ABANDONED, False), (Outcome.SUCCEEDED, True)


REQUESTS = {
    "delayed until its client left: given up": (5001, None, True, [GIVEN_UP]),
    "and a later one on that connection: both given up": (5001, 4999, True, [GIVEN_UP, GIVEN_UP]),
    "answered slowly to a waiting client: a response": (9000, None, True, [ANSWERED]),
    "answered slowly before its client closes: a response": (5001, None, False, [ANSWERED]),
}


@pytest.mark.parametrize(("left_ms", "later_ms", "reconnects", "expected"), REQUESTS.values(), ids=REQUESTS)
def test_request(
    left_ms: float, later_ms: float | None, reconnects: bool, expected: list[tuple[Outcome, bool]]
) -> None:
    journal = Journal()
    journal.connection(0, left_ms, by_client=True)
    journal.batch(10, 5000)
    if later_ms is not None:
        journal.batch(later_ms, 5000.5)
    if reconnects:
        journal.connection(2100)
    assert ends(journal) == expected


def test_without_a_response_the_closing_side_decides(journal: Journal) -> None:
    journal.connection(0, 20, by_client=True)
    journal.batch(10, ended_ms=20, connection=1)
    journal.connection(0, 30)
    journal.batch(10, ended_ms=30, connection=2)
    assert ends(journal) == [(Outcome.ABANDONED, True), (Outcome.DISCONNECTED, True)]


EARLIER = {
    "while the broker handles another": (2000, 1, 0, 10),
    "just after another": (3010, 1, 0, 10),
    "later": (3100, 1, 0, None),
    "while the connection is muted": (3100, 1, 500, 10),
    "of another connection": (2000, 2, 0, None),
}


@pytest.mark.parametrize(("at_ms", "connection", "throttle_ms", "unread_since_ms"), EARLIER.values(), ids=EARLIER)
def test_client_may_have_sent_a_request_earlier_that_is_read(
    at_ms: float, connection: int, throttle_ms: int, unread_since_ms: float | None
) -> None:
    journal = Journal()
    journal.batch(10, 3000, throttle_ms=throttle_ms)
    journal.batch(at_ms, 3200, connection=connection, sequence=7)
    journal.batch(at_ms, 3201, connection=3)
    found = Outcomes(journal.events)
    (request,) = (
        event for event in journal.events if isinstance(event, Request) and event.partitions[0].base_sequence == 7
    )
    attempt = found.attempt(request)
    since_ns = None if unread_since_ms is None else ns(unread_since_ms)
    assert (attempt.unread_since_ns, attempt.sent_from_ns) == (since_ns, since_ns or ns(at_ms))
