"""Groups that rebalance again and again."""

import pytest

from sluice.trace.findings.groups import rebalance_loop as find
from tests.support.journals import Journal
from tests.support.trace_findings import Make, found


def rebalances(*members: int, left: int = 0) -> Make:
    """Return rebalances that end with these numbers of members; `left` members leave."""

    def make(journal: Journal) -> None:
        for number, count in enumerate(members):
            at_ms = 1_000 * number
            sent = {"member_id": "m", "reason": "rebalance"}
            journal.request("JoinGroup", at_ms, at_ms + 8, group_id="g", sent=sent)
            journal.group_state(at_ms, "Stable", "PreparingRebalance", members=count)
            journal.group_state(at_ms + 5, "PreparingRebalance", "CompletingRebalance", members=count)
            journal.group_state(at_ms + 6, "CompletingRebalance", "Stable", members=count)
        for number in range(left):
            journal.request("LeaveGroup", 500 + 1_000 * number, 501 + 1_000 * number, group_id="g")

    return make


def test_a_loop() -> None:
    (one,) = found(find, rebalances(1, 1, 1, 1))
    assert (one.id, one.severity, one.title) == ("rebalance-loop", "error", "Group g rebalances again and again")
    assert "4 rebalances in 3 s" in one.text
    assert "4 of app" in one.text
    assert "rebalance (4)" in one.text


def test_members_that_come_and_go() -> None:
    (one,) = found(find, rebalances(1, 2, 1, 2, 1, 2, 1, 2, left=3))
    assert "members left and others joined 3 times (clients that left: app)." in one.text


SILENT = {
    "members are added": rebalances(1, 2, 3, 4, 5),
    "members leave": rebalances(4, 3, 2, 1, left=3),
    "two without a cause": rebalances(1, 1, 1),
    "a member is restarted": rebalances(1, 2, 1, 2, left=1),
}


@pytest.mark.parametrize("make", SILENT.values(), ids=SILENT)
def test_silent(make: Make) -> None:
    assert not found(find, make)


def test_members_that_left_after_the_failure_are_not_named() -> None:
    (one,) = found(find, rebalances(1, 2, 1, 2, 1, 2, 1, 2, left=3), failed_ms=400)
    assert "clients that left" not in one.text
