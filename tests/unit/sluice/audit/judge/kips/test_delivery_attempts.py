"""KIP-91 statements about attempts, with request.timeout.ms=2000 and delivery.timeout.ms=5000."""

from collections.abc import Iterable, Sequence

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.model.verdict import State, Verdict
from tests.support.audit_events import SETTINGS, callback, observed
from tests.support.journals import Journal, failed_batch

PASS, DEVIATES, INCONCLUSIVE, NOT_OBSERVABLE = State.PASS, State.DEVIATES, State.INCONCLUSIVE, State.NOT_OBSERVABLE


def failing(statement: str, at_ms: Iterable[float], probe: str, *, ended_ms: float = 20_000, **given: float) -> Verdict:
    """Return a batch whose attempts fail with REQUEST_TIMED_OUT at these times."""
    journal = Journal()
    for each in at_ms:
        journal.batch(each, each + 1, sequence=0, errors=[7])
    settings = {**SETTINGS} | {key.replace("_", "."): value for key, value in given.items()}
    return judge(statement, [observed(probe, journal.events, settings=settings, ended_ms=ended_ms)])


LAST_ATTEMPTS = {
    "before its timeout": ([0, 2100, 4200], 20_000, PASS),
    "in the sender pass of its timeout": ([0, 2100, 5080], 20_000, PASS),
    "afterwards": ([0, 2100, 5500], 20_000, DEVIATES),
    "until the end of the observation": ([0, 2100, 4200], 4900, INCONCLUSIVE),
}


@pytest.mark.parametrize(("at_ms", "ended_ms", "state"), LAST_ATTEMPTS.values(), ids=LAST_ATTEMPTS)
def test_kip_91_1_last_attempt(at_ms: list[float], ended_ms: float, state: State) -> None:
    assert failing("KIP-91/1", at_ms, "produce-timed-out", ended_ms=ended_ms).state is state


def test_kip_91_1_attempt_that_is_read_late_may_have_been_sent_in_time(journal: Journal) -> None:
    """As from a client that retries on a connection whose first request is not answered for ten seconds."""
    journal.batch(0, 10_000, sequence=0, errors=[7])
    journal.batch(9_900, 10_001, sequence=0, errors=[7])
    verdict = judge("KIP-91/1", [observed("delivery-mute", journal.events, ended_ms=20_000)])
    assert verdict.state is PASS, verdict.why


def test_kip_91_6_retry_that_is_read_late_may_precede_the_response(journal: Journal) -> None:
    journal.connection(0, answers=True)
    journal.batch(10, 5500, sequence=0)
    journal.batch(5400, 5501, sequence=0)
    run = observed(
        "delivery-late-answer", journal.events, ended_ms=20_000, settings={**SETTINGS, "request.timeout.ms": 9000}
    )
    assert judge("KIP-91/6", [run]).state is PASS


def unanswered(statement: str, tries: Sequence[tuple[float, float, int]]) -> Verdict:
    """Return a batch without responses: its send times, and the time and connection of the client's close."""
    journal = Journal()
    for connection in sorted({connection for _, _, connection in tries}):
        first_ms = min(at_ms for at_ms, _, each in tries if each == connection)
        left_ms = max(left_ms for _, left_ms, each in tries if each == connection)
        assert journal.connection(first_ms - 10, left_ms, by_client=True, answers=True) == connection
    for at_ms, left_ms, connection in tries:
        journal.batch(at_ms, ended_ms=left_ms, sequence=0, connection=connection)
    return judge(statement, [observed("delivery-mute", journal.events, ended_ms=20_000)])


UNANSWERED = {
    "on another connection after each timeout": ([(10, 2010, 1), (2110, 4110, 2), (4310, 6310, 3)], PASS),
    "sooner": ([(10, 1010, 1), (1110, 2110, 2)], DEVIATES),
    "on the unresponsive connection": ([(10, 5000, 1), (2100, 5000, 1)], DEVIATES),
    "after its timeout": ([(10, 2010, 1), (2110, 4110, 2), (5300, 7300, 3)], DEVIATES),
    "never": ([(10, 2010, 1)], INCONCLUSIVE),
}


@pytest.mark.parametrize(("tries", "state"), UNANSWERED.values(), ids=UNANSWERED)
def test_kip_91_4_attempts_of_an_unanswered_batch(tries: list[tuple[float, float, int]], state: State) -> None:
    assert unanswered("KIP-91/4", tries).state is state


EXPIRED = {"at the request timeout": (6300, PASS), "at the batch's own timeout": (5020, DEVIATES)}


@pytest.mark.parametrize(("left_ms", "state"), EXPIRED.values(), ids=EXPIRED)
def test_kip_91_5_connection_of_an_expired_batch_is_closed(left_ms: float, state: State) -> None:
    tries = [(10.0, 2010.0, 1), (2110.0, 4110.0, 2), (4310.0, left_ms, 3)]
    assert unanswered("KIP-91/5", tries).state is state


def test_kip_91_5_a_request_written_late_decides_nothing() -> None:
    runs = []
    for number, left_ms in enumerate((6300, 6300, 5900)):
        journal = Journal()
        assert journal.connection(0, left_ms, by_client=True, answers=True) == 1
        journal.batch(4310, ended_ms=left_ms, sequence=0, connection=1)
        runs.append(observed("delivery-mute", journal.events, ended_ms=20_000, repetition=number))
    assert judge("KIP-91/5", runs).state is INCONCLUSIVE


def test_kip_91_5_requires_a_batch_in_flight() -> None:
    assert unanswered("KIP-91/5", [(10, 2010, 1), (2110, 4110, 2)]).state is INCONCLUSIVE


LATE_RESPONSES = {
    "is ignored": (5500, None, None, PASS),
    "repeats the batch": (5500, 5600, None, DEVIATES),
    "closes the connection": (5500, None, 5510, DEVIATES),
    "is unrelated to a later close": (5500, None, 9000, PASS),
    "was on time": (4500, None, None, INCONCLUSIVE),
}


@pytest.mark.parametrize(("answered_ms", "again_ms", "closed_ms", "state"), LATE_RESPONSES.values(), ids=LATE_RESPONSES)
def test_kip_91_6_late_response(
    answered_ms: float, again_ms: float | None, closed_ms: float | None, state: State
) -> None:
    journal = Journal()
    journal.connection(0, closed_ms, by_client=True, answers=True)
    journal.batch(10, 20, sequence=0, errors=[7])
    journal.batch(4000, answered_ms, sequence=0)
    if again_ms is not None:
        journal.batch(again_ms, again_ms + 1, sequence=0)
    run = observed("delivery-late-answer", journal.events, ended_ms=20_000)
    assert judge("KIP-91/6", [run]).state is state


SECOND_REQUESTS = {
    "after the response": (201, 1, PASS),
    "before it": (100, 1, DEVIATES),
    "before the response, with five allowed in flight": (100, 5, NOT_OBSERVABLE),
}


@pytest.mark.parametrize(("second_ms", "most", "state"), SECOND_REQUESTS.values(), ids=SECOND_REQUESTS)
def test_kip_91_7_second_request(second_ms: float, most: int, state: State, journal: Journal) -> None:
    journal.batch(0, 200, sequence=0)
    journal.batch(second_ms, second_ms + 200, sequence=1)
    settings = {**SETTINGS, "max.in.flight.requests.per.connection": most}
    assert judge("KIP-91/7", [observed("in-flight-one", journal.events, settings=settings)]).state is state


def test_kip_91_7_other_connections_do_not_count(journal: Journal) -> None:
    journal.batch(0, 200, sequence=0)
    journal.batch(100, 300, sequence=1, connection=2)
    journal.batch(301, 310, sequence=2, connection=2)
    settings = {**SETTINGS, "max.in.flight.requests.per.connection": 1}
    assert judge("KIP-91/7", [observed("in-flight-one", journal.events, settings=settings)]).state is PASS


SHORT_TIMEOUTS = {
    "is refused": (False, True, 1000, PASS),
    "is taken": (True, False, 1000, DEVIATES),
    "sends nothing": (False, False, 1000, INCONCLUSIVE),
    "is valid if it equals the request timeout": (True, False, 2000, NOT_OBSERVABLE),
}


@pytest.mark.parametrize(("connects", "rejected", "delivery_ms", "state"), SHORT_TIMEOUTS.values(), ids=SHORT_TIMEOUTS)
def test_kip_91_9_too_short_delivery_timeout(connects: bool, rejected: bool, delivery_ms: float, state: State) -> None:
    journal = Journal()
    if connects:
        journal.connection(0, answers=True)
    callbacks_seen = [callback("rejected", 0)] if rejected else []
    settings = {**SETTINGS, "delivery.timeout.ms": delivery_ms}
    run = observed("delivery-config", journal.events, settings=settings, callbacks=callbacks_seen, ended_ms=2000)
    assert judge("KIP-91/9", [run]).state is state


ATTEMPTS = {"once more than retries": (4, PASS), "twice more": (5, DEVIATES), "as often as retries": (3, DEVIATES)}


@pytest.mark.parametrize(("tries", "state"), ATTEMPTS.values(), ids=ATTEMPTS)
def test_kip_91_12_number_of_attempts(tries: int, state: State) -> None:
    at_ms = [0.0, 101, 302, 703, 1504][:tries]
    assert failing("KIP-91/12", at_ms, "delivery-retries-exhausted", retries=3).state is state


def test_kip_91_12_unfinished_batch_may_be_repeated() -> None:
    verdict = failing("KIP-91/12", [0, 101], "delivery-retries-exhausted", ended_ms=500, retries=3)
    assert verdict.state is INCONCLUSIVE


FAILING = {
    "until its timeout": ([100, 200, 400, 800, 1000, 1000, 1000], 20_000, PASS),
    "twice, then never": ([100, 200], 20_000, DEVIATES),
    "twice, to the end of the observation": ([100, 200], 1000, INCONCLUSIVE),
    "twelve times, to the end of the observation": ([100] * 12, 1500, PASS),
}


@pytest.mark.parametrize(("waits", "ended_ms", "state"), FAILING.values(), ids=FAILING)
def test_kip_91_14_attempts_of_a_failing_batch(waits: list[float], ended_ms: float, state: State) -> None:
    run = observed("produce-timed-out", failed_batch(waits, error=7).events, ended_ms=ended_ms)
    assert judge("KIP-91/14", [run]).state is state


FATAL = {
    "is not repeated": (29, [], PASS),
    "is repeated": (29, [100], DEVIATES),
    "was too large and may be split": (10, [0], INCONCLUSIVE),
    "had a retriable error": (7, [100], INCONCLUSIVE),
}


@pytest.mark.parametrize(("error", "waits", "state"), FATAL.values(), ids=FATAL)
def test_kip_91_15_batch_with_a_fatal_error(error: int, waits: list[float], state: State) -> None:
    assert judge("KIP-91/15", [observed("produce-no-retry", failed_batch(waits, error=error).events)]).state is state
