"""Waits are those of one operation's failed attempts in a row: a success, a new call or another failure ends the row.

Each journal has the same wait between failed requests of one kind: 322 ms, the rhythm of an injected fault or of an
application.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from sluice.audit.judge import judge
from sluice.audit.judge.measured import measured_backoffs
from sluice.audit.judge.model.observation import Observation, Role
from sluice.audit.judge.model.verdict import State
from sluice.audit.judge.observer.calls import WORKED_MEANWHILE
from sluice.journal_events import TopicPartition
from tests.support.audit_events import SETTINGS, observed
from tests.support.journals import Journal

EVERY_MS, COUNT = 322.0, 12
BEFORE_MS = 160.0
PASS, DEVIATES, INCONCLUSIVE, NOT_OBSERVABLE = (State.PASS, State.DEVIATES, State.INCONCLUSIVE, State.NOT_OBSERVABLE)


class Operation(NamedTuple):
    """A retried request, and the request that a client sends only when it has succeeded or was given up.

    only_successes: the other request may fail while this one is retried
    """

    statement: str
    probe: str
    api: str
    error: int
    role: Role
    work: str = ""
    only_successes: bool = False

    def __str__(self) -> str:
        return f"{self.statement} {self.api}"


OPERATIONS = (
    Operation("KIP-580/8", "metadata-leader-not-available", "Metadata", 5, Role.PRODUCER, "Produce"),
    Operation("KIP-580/8", "metadata-unknown-topic", "Metadata", 3, Role.PRODUCER, "Produce"),
    Operation("KIP-580/9", "metadata-disconnect", "Metadata", 5, Role.PRODUCER, "Produce"),
    Operation("KIP-580/10", "coordinator-lookup-error", "FindCoordinator", 15, Role.CONSUMER, "Heartbeat"),
    Operation("KIP-580/10", "commit-error", "OffsetCommit", 14, Role.CONSUMER),
    Operation("KIP-580/11", "heartbeat-error", "Heartbeat", 14, Role.CONSUMER),
    Operation("KIP-580/12", "join-error", "JoinGroup", 14, Role.CONSUMER, "Heartbeat", only_successes=True),
    Operation("KIP-580/13", "list-offsets-error", "ListOffsets", 6, Role.CONSUMER, "Fetch"),
    Operation("KIP-580/14", "init-producer-id-error", "InitProducerId", 14, Role.PRODUCER, "Produce"),
    Operation("KIP-580/15", "admin-error", "DescribeGroups", 14, Role.ADMIN),
)
WITH_WORK = [one for one in OPERATIONS if one.work]
TOPIC = [TopicPartition(topic="t", partition=0)]
OTHER_TOPIC = [TopicPartition(topic="other", partition=0)]
Add = Callable[[Journal, str, float, tuple[int, ...]], None]


def add(journal: Journal, api: str, at_ms: float, errors: tuple[int, ...] = ()) -> None:
    is_of_group = api not in ("Metadata", "Produce", "Fetch", "ListOffsets", "InitProducerId")
    partitions = [] if is_of_group or api == "InitProducerId" else TOPIC
    journal.request(api, at_ms, at_ms + 1, errors=errors, group_id="g" * is_of_group, partitions=partitions)


def run(one: Operation, journal: Journal) -> list[Observation]:
    return [observed(one.probe, journal.events, role=one.role, settings=SETTINGS, is_command=True)]


def failing(one: Operation, *works: tuple[float, tuple[int, ...]], add_work: Add = add) -> Journal:
    """Return failed requests; `works` are the other requests before each, by ms before it, with their errors."""
    journal = Journal()
    for number in range(COUNT):
        at_ms = 2000 + EVERY_MS * number
        for before_ms, errors in works:
            add_work(journal, one.work, at_ms - before_ms, errors)
        add(journal, one.api, at_ms, (one.error,))
    return journal


def is_judged(one: Operation, journal: Journal) -> bool:
    """Return whether the waits between the failed requests count."""
    return len(judge(one.statement, run(one, journal)).series) > 0


@pytest.mark.parametrize("one", OPERATIONS, ids=str)
def test_waits_between_failed_requests_in_a_row_are_judged(one: Operation) -> None:
    assert is_judged(one, failing(one))


@pytest.mark.parametrize("one", WITH_WORK, ids=str)
def test_request_that_follows_its_own_failure_is_a_new_call(one: Operation) -> None:
    """A loop that requests metadata after each failed Produce, whatever the response, and produces in between."""
    observations = run(one, failing(one, (240, ()), (BEFORE_MS, ()), (20, (6,))))
    verdict = judge(one.statement, observations)
    assert (verdict.state, verdict.why) == (
        NOT_OBSERVABLE,
        f"it does not retry: {COUNT} of {COUNT} failed operations were given up",
    )
    assert measured_backoffs(observations) == []


@pytest.mark.parametrize("one", [one for one in WITH_WORK if not one.only_successes], ids=str)
def test_another_failure_alone_ends_the_row(one: Operation) -> None:
    assert judge(one.statement, run(one, failing(one, (20, (6,))))).state is NOT_OBSERVABLE


@pytest.mark.parametrize("one", WITH_WORK, ids=str)
def test_request_between_successes_may_be_a_new_call(one: Operation) -> None:
    """A loop that requests metadata now and then."""
    observations = run(one, failing(one, (240, ()), (BEFORE_MS, ())))
    verdict = judge(one.statement, observations)
    assert (verdict.state, verdict.why) == (INCONCLUSIVE, WORKED_MEANWHILE)
    assert measured_backoffs(observations) == []


def test_rejoining_member_may_send_heartbeats_that_fail() -> None:
    one = next(each for each in WITH_WORK if each.only_successes)
    assert is_judged(one, failing(one, (20, (27,))))


LOST_REQUESTS = {
    "while its records are produced": (None, DEVIATES),
    "while other records fail": (100.0, DEVIATES),
    "just after another failure each time": (20.0, INCONCLUSIVE),
}


@pytest.mark.parametrize(("failed_ms", "state"), LOST_REQUESTS.values(), ids=LOST_REQUESTS)
def test_lost_request_is_sent_again(failed_ms: float | None, state: State, journal: Journal) -> None:
    """As by Kafka's client, which keeps what it knows of the topic when a connection is lost."""
    for number in range(COUNT):
        at_ms = 2000 + EVERY_MS * number
        add(journal, "Produce", at_ms - 240)
        if failed_ms is not None:
            add(journal, "Produce", at_ms - failed_ms, (6,))
        journal.request("Metadata", at_ms, ended_ms=at_ms + 1, partitions=TOPIC)
    verdict = judge("KIP-580/9", [observed("metadata-disconnect", journal.events, settings=SETTINGS)])
    assert verdict.state is state, verdict.why


def other_client(journal: Journal, api: str, at_ms: float, errors: tuple[int, ...]) -> None:
    journal.client_id = "other"
    add(journal, api, at_ms, errors)
    journal.client_id = "app"


def in_flight(journal: Journal, api: str, at_ms: float, errors: tuple[int, ...]) -> None:
    """Add a request that was sent before the last failed one ended."""
    last_ms = at_ms + BEFORE_MS - EVERY_MS
    journal.request(api, last_ms + 0.5, last_ms + 2, errors=errors, partitions=TOPIC)


def other_topic(journal: Journal, api: str, at_ms: float, errors: tuple[int, ...]) -> None:
    journal.request(api, at_ms, at_ms + 1, errors=errors, partitions=OTHER_TOPIC)


OTHER_WORK = {"another client": other_client, "requests in flight": in_flight, "another topic": other_topic}


@pytest.mark.parametrize("add_work", OTHER_WORK.values(), ids=OTHER_WORK)
def test_row_continues_despite_the_work_of(add_work: Add) -> None:
    one = OPERATIONS[0]
    assert is_judged(one, failing(one, (BEFORE_MS, ()), add_work=add_work))


@pytest.mark.parametrize("one", OPERATIONS, ids=str)
def test_failed_requests_in_the_rhythm_of_successful_ones_are_new_calls(one: Operation) -> None:
    """A poll, a commit or a heartbeat at an interval."""
    journal = failing(one)
    for number in range(5):
        add(journal, one.api, 2000 - EVERY_MS * (number + 1))
    observations = run(one, journal)
    assert judge(one.statement, observations).state is NOT_OBSERVABLE
    assert measured_backoffs(observations) == []


@pytest.mark.parametrize("one", OPERATIONS, ids=str)
def test_other_rhythm_of_successful_requests_changes_nothing(one: Operation) -> None:
    journal = failing(one)
    for number in range(5):
        add(journal, one.api, 2000 - 450 * (number + 1))
    assert is_judged(one, journal)


CONNECTS = {
    "KIP-144/1, as often as the application sends": ("KIP-144/1", 2000, INCONCLUSIVE),
    "KIP-144/2, as often as the application sends": ("KIP-144/2", 2000, INCONCLUSIVE),
    "KIP-144/9, as often as the application sends": ("KIP-144/9", 2000, INCONCLUSIVE),
    "KIP-144/1, less often": ("KIP-144/1", 300, DEVIATES),
    "KIP-144/2, less often": ("KIP-144/2", 300, DEVIATES),
    "KIP-144/9, less often": ("KIP-144/9", 300, DEVIATES),
}


@pytest.mark.parametrize(("statement", "pause_ms", "state"), CONNECTS.values(), ids=CONNECTS)
def test_client_connects(statement: str, pause_ms: float, state: State, journal: Journal) -> None:
    """A client that connects when its application sends, every two seconds."""
    for number in range(5):
        journal.batch(pause_ms * number, pause_ms * number + 1, records=[f"{number}"])
    for number in range(30):
        journal.connection(11_000 + 2000.0 * number, 11_001 + 2000.0 * number)
    runs = [observed("reconnect-closed", journal.events, is_command=True, repetition=each) for each in range(4)]
    verdict = judge(statement, runs)
    assert verdict.state is state, verdict.why


@pytest.mark.parametrize("statement", ["KIP-580/1", "KIP-580/2", "KIP-580/17", "KIP-580/16"])
def test_batch_that_is_sent_after_its_success_is_no_retry(statement: str) -> None:
    """A finding, but not a short wait."""
    journal, at_ms = Journal(), 0.0
    for sequence, jitter in enumerate((0.83, 0.9, 0.96, 1.02, 1.08, 1.15)):
        for wait_ms in (100, 200, 400, 800, 1000, 1000, 1000):
            journal.batch(at_ms, at_ms + 1, sequence=sequence, errors=[7])
            at_ms += 1 + min(1000, jitter * wait_ms)
        for _ in range(12):
            journal.batch(at_ms, at_ms + 1, sequence=sequence)
            at_ms += 20
    verdict = judge(statement, [observed("produce-timed-out", journal.events)])
    assert verdict.state is PASS, verdict.why
