"""A group that rebalances again and again: without a cause, or as members come and go."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from sluice.journal_events import GroupState
from sluice.trace.findings.history import (
    Found,
    History,
    client_of,
    duration,
    grouped,
    listed,
    seqs,
    text_value,
)

_LEAST = 3  # rebalances without a cause, or returns of members
_BEGINS = frozenset({"PreparingRebalance", "Assigning"})
_ENDS = frozenset({"CompletingRebalance", "Stable", "Reconciling"})


def find(history: History) -> Iterator[Found]:
    for group_id, states in grouped(history.of(GroupState), lambda event: event.group_id).items():
        begun = [event for event in states if event.after in _BEGINS and event.before not in _BEGINS]
        sizes = [event.members for event in states if event.after in _ENDS]
        rises = sum(1 for before, after in pairwise((0, *sizes)) if after > before)
        left = sum(1 for one in history.apis("LeaveGroup") if one.group_id == group_id and not one.error_codes)
        loops = len(begun) - rises - left
        if loops >= _LEAST:
            cause = f"{loops} of them without a new member or one that left"
            yield _finding(history, group_id, begun, cause)
        elif (returns := _returns(states)) >= _LEAST:
            leaves = [one for one in history.apis("LeaveGroup") if one.group_id == group_id]
            leavers = dict.fromkeys(client_of(one) for one in leaves if not history.is_after_failure(one.received_ns))
            cause = f"members left and others joined {returns} times"
            cause += f" (clients that left: {listed(leavers, 10)})" if leavers else ""
            yield _finding(history, group_id, begun, cause)


def _returns(states: list[GroupState]) -> int:
    """Return how often the number of members rose after it had fallen."""
    returns, before, has_fallen = 0, 0, False
    for event in states:
        if event.members > before and has_fallen:
            returns, has_fallen = returns + 1, False
        has_fallen = has_fallen or event.members < before
        before = event.members
    return returns


def _finding(history: History, group_id: str, begun: list[GroupState], cause: str) -> Found:
    first, last = begun[0], begun[-1]
    joins = [one for one in history.apis("JoinGroup") if one.group_id == group_id]
    clients = Counter(map(client_of, joins))
    reasons = Counter(filter(None, (text_value(one.sent, "reason") for one in joins)))
    text = f"{len(begun)} rebalances in {duration(last.at_ns - first.at_ns)}, from {history.when(first.at_ns)}; "
    text += f"{cause}."
    if clients:
        text += f" JoinGroup requests: {listed(f'{number} of {name}' for name, number in clients.most_common())}."
    if reasons:
        text += f" Reasons: {listed(f'{name} ({number})' for name, number in reasons.most_common())}."
    title = f"Group {group_id} rebalances again and again"
    return Found("rebalance-loop", "error", title, text, first.at_ns, seqs(begun), [group_id, *clients])
