"""Verdicts on commands, whose calls and records are not reported: what was once wrong about franz-go, sarama, kafkajs.

The waits are those of the clients' journals.
"""

from collections.abc import Callable, Sequence

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.verdict import State, Verdict
from sluice.audit.judge.observer.batches import EQUAL_RECORDS, NO_HASHES
from tests.support.audit_events import SETTINGS, observed
from tests.support.journals import Journal, starts

PASS, DEVIATES, INCONCLUSIVE, NOT_OBSERVABLE = (State.PASS, State.DEVIATES, State.INCONCLUSIVE, State.NOT_OBSERVABLE)
KAFKAJS = {**SETTINGS, "retry.backoff.ms": 300, "retry.backoff.max.ms": 30_000}
# How records of batches of equal size are identified.
UNIQUE: Callable[[int], Sequence[str]] = lambda number: [f"{number:x}"]  # noqa: E731
EQUAL: Callable[[int], Sequence[str]] = lambda number: ["0"]  # noqa: E731
UNKNOWN: Callable[[int], Sequence[str]] = lambda number: []  # noqa: E731


def failing(waits: Sequence[Sequence[float]], records: Callable[[int], Sequence[str]], error: int = 7) -> Journal:
    """Return batches of equal size that fail, each with these waits before its retries, and then the next one."""
    journal, at_ms = Journal(), 0.0
    journal.batch(-1000, -999, records=records(99))
    for number, of_one in enumerate(waits):
        for wait_ms in (*of_one, 37):
            journal.batch(at_ms, at_ms + 1, records=records(number), errors=[error])
            at_ms += 1 + wait_ms
    return journal


def command(probe: str, journal: Journal, settings: dict[str, float | str | bool] | None = None) -> list[Observation]:
    return [observed(probe, journal.events, settings=settings or SETTINGS, is_command=True)]


EQUAL_SIZES = {
    "different content": (UNIQUE, PASS, "resends none of 20 batches after a non-retriable error"),
    "equal content": (EQUAL, INCONCLUSIVE, EQUAL_RECORDS),
    "unknown content": (UNKNOWN, INCONCLUSIVE, NO_HASHES),
}


@pytest.mark.parametrize(("records", "state", "why"), EQUAL_SIZES.values(), ids=EQUAL_SIZES)
def test_new_batches_of_equal_size_are_not_retries_with(
    records: Callable[[int], Sequence[str]], state: State, why: str
) -> None:
    verdict = judge("KIP-91/15", command("produce-no-retry", failing([[]] * 20, records, error=29)))
    assert (verdict.state, verdict.why) == (state, why)


@pytest.mark.parametrize("statement", ["KIP-580/1", "KIP-580/6", "KIP-580/17"])
@pytest.mark.parametrize(("records", "state"), [(UNIQUE, PASS), (EQUAL, INCONCLUSIVE), (UNKNOWN, INCONCLUSIVE)])
def test_next_batch_of_equal_size_does_not_come_too_early(
    statement: str, records: Callable[[int], Sequence[str]], state: State
) -> None:
    probe = "produce-then-success" if statement == "KIP-580/6" else "produce-timed-out"
    journal = failing([[298, 641, 1153, 2385]] * 4, records)
    journal.batch(60_000, 60_001, records=["f"], errors=[7])
    journal.batch(60_301, 60_302, records=["f"])
    for number in range(4):
        journal.batch(61_000 + 1000 * number, 61_001 + 1000 * number, records=[f"a{number}"], errors=[7])
        journal.batch(61_302 + 1000 * number, 61_303 + 1000 * number, records=[f"a{number}"])
    events = [event for event in journal.events if records is UNIQUE or event.at_ns < journal.events[-10].at_ns]
    verdict = judge(statement, [observed(probe, events, settings=KAFKAJS, is_command=True)])
    assert verdict.state is state, verdict.why


def test_constant_waits_of_several_batches_are_fitted_as_such(journal: Journal) -> None:
    """As in sarama, which gives up after three retries; a batch of equal size follows four seconds later."""
    for number in range(6):
        for attempt in range(4):
            at_ms = 4500.0 * number + 102 * attempt
            journal.batch(at_ms, at_ms + 1, records=[f"{number}"], errors=[7])
    verdict = judge("KIP-580/1", command("produce-timed-out", journal))
    assert (verdict.state, verdict.why) == (
        DEVIATES,
        "waits about 101 ms each time; expected 100, 200, 400 ... 1000 ms ± 20 %",
    )
    assert verdict.where == "run 1, attempts 2 and 3 of t-0~4"
    assert verdict.fit is not None
    assert (verdict.fit.model, round(verdict.fit.base_ms), round(verdict.fit.residual)) == ("constant", 101, 0)


EARLY = [("KIP-580/2", 4, NOT_OBSERVABLE), ("KIP-580/17", 4, NOT_OBSERVABLE), ("KIP-580/2", 3, INCONCLUSIVE)]


@pytest.mark.parametrize(("statement", "batches", "state"), EARLY)
def test_client_that_gives_up_early_never_reaches_the_maximum(statement: str, batches: int, state: State) -> None:
    """As sarama, after three retries."""
    verdict = judge(statement, command("produce-timed-out", failing([[100, 200, 300]] * batches, UNIQUE)))
    assert (verdict.state, verdict.why.startswith("it gives up after 4 attempts")) == (state, state is NOT_OBSERVABLE)


def calls(statement: str, probe: str, api: str, waits: Sequence[float]) -> Verdict:
    journal = Journal()
    for at_ms in starts(waits):
        journal.request(api, at_ms, at_ms + 1, errors=[3])
    return judge(statement, command(probe, journal, KAFKAJS))


METADATA_REQUESTS = {
    "a new call after five retries": ([300, 610, 1190, 2420, 4800, 20, 300, 590, 1230], PASS),
    "a call whose begin is not seen": ([300, 610, 1190, 2420, 300, 590, 1230], INCONCLUSIVE),
    "several calls at once": ([20, 310, 20, 20, 590, 20, 1200, 20], INCONCLUSIVE),
    "a pause of the application": ([300, 610, 1190, 9000, 300, 600], PASS),
    "one call with constant waits": ([300] * 8, DEVIATES),
}


@pytest.mark.parametrize(("waits", "state"), METADATA_REQUESTS.values(), ids=METADATA_REQUESTS)
def test_metadata_requests_of(waits: Sequence[float], state: State) -> None:
    verdict = calls("KIP-580/8", "metadata-unknown-topic", "Metadata", waits)
    assert verdict.state is state, verdict.why


def test_heartbeat_after_a_rejoin_is_not_a_retry(journal: Journal) -> None:
    for number in range(6):
        at_ms = 101.0 * number
        journal.request("Heartbeat", at_ms, at_ms + 0.2, group_id="g", errors=[14])
        journal.request("JoinGroup", at_ms + 100, at_ms + 100.2, group_id="g")
        journal.request("SyncGroup", at_ms + 100.3, at_ms + 100.4, group_id="g")
    verdict = judge("KIP-580/11", command("heartbeat-error", journal))
    assert verdict.state is not DEVIATES, verdict.why


THROTTLED_MS = 1500


def bursts(journal: Journal) -> None:
    """Add bursts of kafkajs 1,502 ms apart: responses are throttled, and the connection is muted after each."""
    for burst in range(4):
        at_ms = 4506.0 * burst
        for number in range(3):
            answered_ms = at_ms + 1 + 1502 * number
            journal.batch(at_ms, answered_ms, records=[f"{burst}.{number}"], throttle_ms=THROTTLED_MS)


SENDING = {
    "in bursts": ([], 99_000, PASS),
    "in bursts, and read when the fault ends and the connection is unmuted": ([15_777], 15_776, PASS),
    "alone, in the middle of a throttle": ([16_600, 17_000], 99_000, DEVIATES),
}


@pytest.mark.parametrize(("late_ms", "fault_until_ms", "state"), SENDING.values(), ids=SENDING)
def test_requests_are_sent(late_ms: Sequence[float], fault_until_ms: float, state: State, journal: Journal) -> None:
    bursts(journal)
    for each in late_ms:
        journal.batch(each, each + 0.2, records=[f"{each}"])
    run = observed("throttle-long", journal.events, is_command=True, fault_ms=(0, fault_until_ms))
    verdict = judge("KIP-13/20", [run])
    assert verdict.state is state, verdict.why


METADATA_AGAIN = {
    "at once": (2, DEVIATES),
    "as an application may call": (20, INCONCLUSIVE),
    "after the base": (100, DEVIATES),
}


@pytest.mark.parametrize(("wait_ms", "state"), METADATA_AGAIN.values(), ids=METADATA_AGAIN)
def test_metadata_is_requested_again(wait_ms: float, state: State, journal: Journal) -> None:
    for number in range(40):
        journal.request("Metadata", number * (1 + wait_ms), number * (1 + wait_ms) + 1, errors=[3])
    assert judge("KIP-580/8", command("metadata-unknown-topic", journal)).state is state
