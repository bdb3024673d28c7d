"""Members that a group lost: fenced, expired, or too late."""

import pytest

from sluice.journal_events import Value
from sluice.trace.findings.members import member_lost as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found, kinds

UNKNOWN_MEMBER, ILLEGAL_GENERATION, FENCED_INSTANCE = 25, 22, 82


def join(journal: Journal, at_ms: float = 1, member: str = "m", instance: str = "") -> None:
    sent: dict[str, Value] = {"member_id": "", "session_timeout_ms": 6_000, "rebalance_timeout_ms": 5_000}
    sent |= {"group_instance_id": instance} if instance else {}
    journal.request("JoinGroup", at_ms, at_ms + 1, group_id="g", sent=sent, returned={"member_id": member})


def heartbeat(
    journal: Journal, at_ms: float, error: int = 0, member: str = "m", rule_id: str = "", **sent: str
) -> None:
    errors = [error] if error else []
    fields = {"member_id": member, **sent}
    journal.request("Heartbeat", at_ms, at_ms + 1, group_id="g", errors=errors, sent=fields, rule_id=rule_id)


def leave(journal: Journal, at_ms: float, reason: str = "") -> None:
    sent: dict[str, Value] = {"members": ["m"], **({"reason": reason} if reason else {})}
    journal.request("LeaveGroup", at_ms, at_ms + 1, group_id="g", sent=sent)


def expired(journal: Journal) -> None:
    join(journal)
    heartbeat(journal, 100)
    heartbeat(journal, 9_000, UNKNOWN_MEMBER)


def expired_silently(journal: Journal) -> None:
    join(journal)
    heartbeat(journal, 1_000)
    journal.group_state(7_001, "Stable", "PreparingRebalance")


def expired_without_answers(journal: Journal) -> None:
    join(journal)
    for at_ms in (1_000, 4_000, 7_000):
        journal.request("Heartbeat", at_ms, ended_ms=at_ms + 1, group_id="g", sent={"member_id": "m"}, rule_id="r")
    heartbeat(journal, 9_000, UNKNOWN_MEMBER)


def polled_too_late(journal: Journal) -> None:
    join(journal)
    journal.group_state(1_000, "Stable", "PreparingRebalance")
    for at_ms in range(1_000, 6_000, 1_000):
        heartbeat(journal, at_ms)
    journal.group_state(6_000, "PreparingRebalance", "CompletingRebalance")
    heartbeat(journal, 6_500, UNKNOWN_MEMBER)


def left_too_late(journal: Journal) -> None:
    join(journal)
    leave(journal, 5_000, "consumer poll timeout has expired.")


def fenced(journal: Journal) -> None:
    join(journal, instance="i")
    other = journal.beside(client_id="other")
    join(other, 50, "m2", "i")
    heartbeat(journal, 100, FENCED_INSTANCE, group_instance_id="i")


def continued(journal: Journal) -> None:
    join(journal)
    heartbeat(journal, 100, ILLEGAL_GENERATION)


def by_rule(journal: Journal) -> None:
    join(journal)
    heartbeat(journal, 100, UNKNOWN_MEMBER, rule_id="r")


def left(journal: Journal) -> None:
    join(journal)
    leave(journal, 1_000, "the consumer is being closed")
    journal.group_state(7_001, "Stable", "PreparingRebalance")


def left_silently(journal: Journal) -> None:
    journal.connection(0)
    join(journal)
    leave(journal, 5_000)


def left_and_closed(journal: Journal) -> None:
    journal.connection(0, 5_002, by_client=True)
    join(journal)
    leave(journal, 5_000)


def healthy(journal: Journal) -> None:
    join(journal)
    for at_ms in range(1_000, 9_000, 1_000):
        heartbeat(journal, at_ms)
    journal.group_state(5_000, "Stable", "PreparingRebalance")


CASES = {
    "expired": (expired, [("member-expired", "error")], "session.timeout.ms is 6000"),
    "expired without noticing": (expired_silently, [("member-expired", "warning")], "its last request was heartbeat"),
    "expired as no heartbeat was handled": (expired_without_answers, [("member-expired", "error")], "Fault rule r hit"),
    "polled too late": (polled_too_late, [("poll-too-late", "error")], "max.poll.interval.ms=5000"),
    "left for a late poll": (left_too_late, [("poll-too-late", "error")], "max.poll.records"),
    "left, and stayed connected": (left_silently, [("poll-too-late", "warning")], "or it unsubscribed"),
    "left, and was closed": (left_and_closed, [], ""),
    "fenced by a twin": (fenced, [("member-fenced", "error")], "is i: another consumer has joined with the same id"),
    "a generation of the past": (continued, [("member-lost", "warning")], "illegal_generation"),
    "an error of a fault rule": (by_rule, [], ""),
    "left": (left, [], ""),
    "healthy": (healthy, [], ""),
}


@pytest.mark.parametrize(("make", "expected", "text"), CASES.values(), ids=CASES)
def test_members(make: Make, expected: list[tuple[str, str]], text: str) -> None:
    findings = found(find, make)
    assert kinds(findings) == expected
    assert all(text in one.text.lower() or text in one.text for one in findings)


def test_the_twin_is_named() -> None:
    (one,) = found(find, fenced)
    assert "clients other do" in one.text
