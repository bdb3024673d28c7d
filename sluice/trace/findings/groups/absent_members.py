"""The clients that a rebalance waits for."""

from sluice.journal_events import GroupState, Request
from sluice.trace.described import has_failed
from sluice.trace.findings.history import History, client_of


def absent_members(history: History, join: Request) -> list[str]:
    """Return the clients of the group of a JoinGroup that had joined before its rebalance, and did not join it."""
    begun = [
        event.at_ns
        for event in history.of(GroupState)
        if event.group_id == join.group_id and event.after == "PreparingRebalance" and event.at_ns <= join.at_ns
    ]
    if not begun:
        return []
    began_ns = begun[-1]
    members: dict[str, bool] = {}  # client -> whether it is absent
    for request in history.apis("JoinGroup", "LeaveGroup"):
        if request.group_id != join.group_id or request.received_ns > join.at_ns:
            continue
        if request.api == "LeaveGroup":
            members.pop(client_of(request), None)
        elif request.at_ns >= began_ns:
            members[client_of(request)] = False
        elif not has_failed(request):
            members[client_of(request)] = True
    return [client for client, is_absent in members.items() if is_absent]
