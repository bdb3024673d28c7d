"""The order of findings."""

import pytest

from sluice.journal_events import BrokerState, Fault, Gap, Value
from sluice.trace.findings.ranking import FINDERS, ranked
from tests.support.journals import Journal
from tests.support.trace_findings import Make, history_of

NOT_LEADER, TOO_LARGE = 6, 10


def events(journal: Journal) -> None:
    journal.of_cluster(Gap, 0, lost=1)
    journal.throttle(2, 5)
    journal.request("Produce", 3, 3_000, errors=[TOO_LARGE])
    journal.beside(client_id="other").batch(1, 2, errors=[NOT_LEADER])


ORDERS = {
    "severity": ("", ["not-retriable", "retries-ended", "slow-response", "lost-events", "throttled"]),
    "a name that is part of a word": (
        "another reason",
        ["not-retriable", "retries-ended", "slow-response", "lost-events", "throttled"],
    ),
    "named in the failure": (
        "client other got nothing",
        ["retries-ended", "not-retriable", "slow-response", "lost-events", "throttled"],
    ),
}


@pytest.mark.parametrize(("failure", "ids"), ORDERS.values(), ids=ORDERS)
def test_order(failure: str, ids: list[str]) -> None:
    assert [one.id for _, one in ranked([history_of(events, after_ms=60_000)], failure)] == ids


def test_findings_of_several_clusters_have_their_numbers() -> None:
    histories = [history_of(lambda journal: journal.request("Produce", 1, 2)), history_of(events)]
    assert {number for number, _ in ranked(histories)} == {1}


def test_findings_of_the_same_title_are_one() -> None:
    def make(journal: Journal) -> None:
        for at_ms in (1, 5, 9):
            sent: dict[str, Value] = {"members": [f"m{at_ms}"], "reason": "poll timeout"}
            journal.request("LeaveGroup", at_ms, at_ms + 1, group_id="g", sent=sent)

    ((_, one),) = ranked([history_of(make)])
    assert one.text.endswith("\nThe same happened 2 times more, the last time at +0.009 s.")
    assert len(one.seqs) == 3


def test_nothing_is_found_in_an_ordinary_run() -> None:
    def make(journal: Journal) -> None:
        journal.connection(0, 50, by_client=True, answers=True)
        journal.batch(5, 6, sequence=0)
        journal.batch(10, 11, sequence=1)

    assert not ranked([history_of(make)])


def test_every_finder_is_listed_once() -> None:
    assert len(set(FINDERS)) == len(FINDERS)


def faulty(journal: Journal) -> None:
    journal.connection(0, 20, by_client=True)
    journal.request("Produce", 1, ended_ms=10, rule_id="r")
    journal.of_client(Fault, 2, rule_id="r", action="close", api="Produce", version=9, correlation_id=1)


def stopped(journal: Journal) -> None:
    journal.batch(1, 2, topic="t")
    journal.of_cluster(BrokerState, 10, broker=1, state="stopped")
    journal.request("Metadata", 2_500, 2_501)


def loop_by_rule(journal: Journal) -> None:
    for number in range(4):
        journal.group_state(1_000 * number, "Stable", "PreparingRebalance", members=1)
        journal.group_state(1_000 * number + 6, "CompletingRebalance", "Stable", members=1)
    faulty(journal)


ONE_FINDING = {
    "a rule whose effect is a finding": (faulty, ["unanswered-request"]),
    "a broker whose partitions have a finding": (stopped, ["election-without-leader"]),
    "a rule precedes what it caused": (loop_by_rule, ["unanswered-request", "rebalance-loop"]),
}


@pytest.mark.parametrize(("make", "ids"), ONE_FINDING.values(), ids=ONE_FINDING)
def test_one_cause_is_one_finding(make: Make, ids: list[str]) -> None:
    assert [one.id for _, one in ranked([history_of(make)])] == ids


def throttled(journal: Journal) -> None:
    journal.request("Produce", 1, 2, throttle_ms=2_000)
    journal.throttle(2, 2_000)


def unclosed(journal: Journal) -> None:
    journal.connection(0, 50, answers=True)
    journal.batch(5, 6)


FIRST_CAUSES = {
    "of a failed test": (throttled, "assert 1 == 2", "error"),
    "without a failure": (throttled, "", "warning"),
    "an effect of the failure": (unclosed, "assert 1 == 2", "warning"),
}


@pytest.mark.parametrize(("make", "failure", "severity"), FIRST_CAUSES.values(), ids=FIRST_CAUSES)
def test_the_first_cause_of_a_failure_is_an_error(make: Make, failure: str, severity: str) -> None:
    ((_, one),) = ranked([history_of(make)], failure)
    assert one.severity == severity
