"""Partitions without a leader, and records lost at an election."""

import pytest

from sluice.journal_events import BrokerState, LeaderChange
from sluice.trace.findings.brokers import elections as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found, kinds


def change(journal: Journal, at_ms: float, before: int, after: int, *, lost: int = 0, partition: int = 0) -> None:
    fields = {
        "topic": "t",
        "partition": partition,
        "before": before,
        "leader_epoch": 1,
        "isr": [1],
        "lost_records": lost,
    }
    journal.of_cluster(LeaderChange, at_ms, broker=after, **fields)


def gap(until_ms: float | None) -> Make:
    def make(journal: Journal) -> None:
        change(journal, 1, 1, -1)
        change(journal, 1, 1, -1, partition=1)
        for partition in () if until_ms is None else (0, 1):
            change(journal, until_ms or 0, -1, 2, partition=partition)

    return make


def stopped(*, again: bool = False, moved: bool = False, at_ms: float = 10) -> Make:
    def make(journal: Journal) -> None:
        journal.batch(1, 2, topic="t")
        journal.of_cluster(BrokerState, at_ms, broker=1, state="stopped")
        if moved:
            change(journal, 20, 1, 2)
        if again:
            journal.of_cluster(BrokerState, 20, broker=1, state="running")
        journal.request("Metadata", 2_500, 2_501)

    return make


CASES = {
    "the leader stopped": (stopped(), [("election-without-leader", "error")]),
    "the leader stopped, and another was elected": (stopped(moved=True), []),
    "the leader stopped, and started": (stopped(again=True), []),
    "the leader stopped at the end": (stopped(at_ms=2_900), []),
    "records lost": (lambda journal: change(journal, 1, 1, 2, lost=3), [("lost-records", "error")]),
    "no leader until the end": (gap(None), [("election-without-leader", "error")]),
    "no leader for 2 s": (gap(2_001), [("election-without-leader", "error")]),
    "no leader for 500 ms": (gap(501), [("election-without-leader", "info")]),
    "a leader moved": (lambda journal: change(journal, 1, 1, 2), []),
}


@pytest.mark.parametrize(("make", "expected"), CASES.values(), ids=CASES)
def test_elections(make: Make, expected: list[tuple[str, str]]) -> None:
    assert kinds(found(find, make)) == expected


def test_partitions_of_a_topic_are_one_finding() -> None:
    (one,) = found(find, gap(2_001))
    assert one.title == "t-0, t-1 had no leader for 2 s"


def test_no_election_has_a_reason() -> None:
    (one,) = found(find, stopped())
    assert one.title == "t-0 had no leader until the end: broker 1 stopped"
    assert "did not move its leaders first. The controller had not fenced it 3.491 s later" in one.text


def shrunken(*, acks: int, back_ms: float = 40) -> Make:
    def make(journal: Journal) -> None:
        journal.of_cluster(BrokerState, 1, broker=2, state="isolated")
        journal.of_cluster(BrokerState, back_ms, broker=2, state="running")
        journal.batch(5, 30, topic="t", sent={"acks": acks})
        change(journal, 50, 1, 2, lost=1)

    return make


LOST_RECORDS = {
    "acks=all, with a replica that was out of sync": (
        shrunken(acks=-1),
        "acknowledged while broker 2 was isolated and not in sync (+0.001 s to +0.040 s): the in-sync replicas had "
        "shrunk, and this was an unclean election. Set min.insync.replicas=2",
        "Set acks=all",
    ),
    "acks=all": (shrunken(acks=-1, back_ms=3), "sent with acks=all. Set min.insync.replicas=2", "unclean"),
    "acks=1": (shrunken(acks=1), "Set acks=all and min.insync.replicas=2", "unclean"),
}


@pytest.mark.parametrize(("make", "text", "absent"), LOST_RECORDS.values(), ids=LOST_RECORDS)
def test_lost_records_have_a_reason(make: Make, text: str, absent: str) -> None:
    (one,) = found(find, make)
    assert text in one.text
    assert absent not in one.text


def elected_late(journal: Journal) -> None:
    stopped()(journal)
    change(journal, 2_600, 1, 2)


def test_an_election_after_the_failure_was_too_late() -> None:
    (one,) = found(find, elected_late, failed_ms=2_000)
    assert one.title == "t-0 had no leader until the test failed: broker 1 stopped"
    assert "not fenced it 1.99 s later" in one.text
    assert found(find, elected_late) == []
