from sluice.audit.judge.model.attempts import Outcome
from sluice.audit.judge.observer.outcomes import Outcomes
from sluice.journal_events import Request
from tests.support.audit_events import Journal


def ends(journal: Journal) -> list[tuple[Outcome, bool]]:
    """Return the outcome of each request, and whether its end is known."""
    found = Outcomes(journal.events)
    attempts = [found.attempt(event) for event in journal.events if isinstance(event, Request)]
    return [(attempt.outcome, attempt.ended_ns is not None) for attempt in attempts]


def test_request_delayed_until_its_client_left_was_given_up() -> None:
    journal = Journal()
    journal.connection(0, 5001, by_client=True)
    journal.batch(10, 5000)
    journal.connection(2100)
    assert ends(journal) == [(Outcome.ABANDONED, False)]


def test_requests_after_it_were_given_up_too() -> None:
    journal = Journal()
    journal.connection(0, 5001, by_client=True)
    journal.batch(10, 5000)
    journal.batch(4999, 5000.5)
    journal.connection(2100)
    assert ends(journal) == [(Outcome.ABANDONED, False)] * 2


def test_slow_response_to_a_waiting_client_is_a_response() -> None:
    journal = Journal()
    journal.connection(0, 9000, by_client=True)
    journal.batch(10, 5000)
    journal.connection(2100)
    assert ends(journal) == [(Outcome.SUCCEEDED, True)]


def test_client_that_closes_after_a_slow_response_received_it() -> None:
    journal = Journal()
    journal.connection(0, 5001, by_client=True)
    journal.batch(10, 5000)
    assert ends(journal) == [(Outcome.SUCCEEDED, True)]


def test_without_a_response_the_closing_side_decides() -> None:
    journal = Journal()
    journal.connection(0, 20, by_client=True)
    journal.batch(10, ended_ms=20, connection=1)
    journal.connection(0, 30)
    journal.batch(10, ended_ms=30, connection=2)
    assert ends(journal) == [(Outcome.ABANDONED, True), (Outcome.DISCONNECTED, True)]
