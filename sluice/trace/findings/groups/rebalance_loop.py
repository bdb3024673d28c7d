"""A group that rebalances again and again, although no member is added and none leaves."""

from collections import Counter
from collections.abc import Iterator

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

_LEAST = 3  # rebalances without a cause
_BEGINS = frozenset({"PreparingRebalance", "Assigning"})
_ENDS = frozenset({"CompletingRebalance", "Stable", "Reconciling"})


def find(history: History) -> Iterator[Found]:
    for group_id, states in grouped(history.of(GroupState), lambda event: event.group_id).items():
        begun = [event for event in states if event.after in _BEGINS and event.before not in _BEGINS]
        most, growths = 0, 0
        for event in states:
            if event.after in _ENDS and event.members > most:
                most, growths = event.members, growths + 1
        left = sum(1 for one in history.apis("LeaveGroup") if one.group_id == group_id and not one.error_codes)
        loops = len(begun) - growths - left
        if loops >= _LEAST:
            yield _finding(history, group_id, begun, loops)


def _finding(history: History, group_id: str, begun: list[GroupState], loops: int) -> Found:
    first, last = begun[0], begun[-1]
    joins = [one for one in history.apis("JoinGroup") if one.group_id == group_id]
    clients = Counter(map(client_of, joins))
    reasons = Counter(filter(None, (text_value(one.sent, "reason") for one in joins)))
    text = f"{len(begun)} rebalances in {duration(last.at_ns - first.at_ns)}, from {history.when(first.at_ns)}; "
    text += f"{loops} of them without a new member or one that left."
    if clients:
        text += f" JoinGroup requests: {listed(f'{number} of {name}' for name, number in clients.most_common())}."
    if reasons:
        text += f" Reasons: {listed(f'{name} ({number})' for name, number in reasons.most_common())}."
    title = f"Group {group_id} rebalances again and again"
    return Found("rebalance-loop", "error", title, text, first.at_ns, seqs(begun), [group_id, *clients])
