"""The members that a rebalance waits for."""

import pytest

from sluice.trace.findings.groups import absent_members
from tests.support.journals import Journal
from tests.support.trace_findings import Make, history_of


def rebalance(*, joins: bool = False, leaves: bool = False, begins: bool = True) -> Make:
    def make(journal: Journal) -> None:
        first = journal.beside(client_id="first")
        first.request("JoinGroup", 1, 2, group_id="g")
        journal.beside(client_id="of another group").request("JoinGroup", 1, 2, group_id="h")
        if leaves:
            first.request("LeaveGroup", 5, 6, group_id="g")
        if begins:
            journal.group_state(10, "Stable", "PreparingRebalance")
        if joins:
            first.request("JoinGroup", 12, 90, group_id="g")
        journal.request("JoinGroup", 10, ended_ms=100, group_id="g")

    return make


CASES = {
    "one does not join": (rebalance(), ["first"]),
    "all join": (rebalance(joins=True), []),
    "it left before": (rebalance(leaves=True), []),
    "no rebalance is recorded": (rebalance(begins=False), []),
}


@pytest.mark.parametrize(("make", "clients"), CASES.values(), ids=CASES)
def test_clients(make: Make, clients: list[str]) -> None:
    history = history_of(make)
    (join,) = [one for one in history.apis("JoinGroup") if one.client_id == "app"]
    assert absent_members(history, join) == clients
