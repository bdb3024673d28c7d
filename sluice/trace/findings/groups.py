"""Groups: rebalances, commits and acquisition locks, and the clients that a rebalance waits for."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from sluice.journal_events import NO_ID, AcquisitionTimeout, GroupState, Request
from sluice.trace.described import counted, has_failed

from .history import Found, History, client_of, duration, grouped, listed, seqs, text_value

_LEAST = 3  # rebalances without a cause, or returns of members
_BEGINS = frozenset({"PreparingRebalance", "Assigning"})
_ENDS = frozenset({"CompletingRebalance", "Stable", "Reconciling"})


def rebalance_loop(history: History) -> Iterator[Found]:
    """Yield groups that rebalance again and again: without a cause, or as members come and go."""
    for group_id, states in grouped(history.of(GroupState), lambda event: event.group_id).items():
        begun = [event for event in states if event.after in _BEGINS and event.before not in _BEGINS]
        sizes = [event.members for event in states if event.after in _ENDS]
        rises = sum(1 for before, after in pairwise((0, *sizes)) if after > before)
        left = sum(1 for one in history.apis("LeaveGroup") if one.group_id == group_id and not one.error_codes)
        loops = len(begun) - rises - left
        if loops >= _LEAST:
            cause = f"{loops} of them without a new member or one that left"
            yield _loop(history, group_id, begun, cause)
        elif (returns := _returns(states)) >= _LEAST:
            leaves = [one for one in history.apis("LeaveGroup") if one.group_id == group_id]
            leavers = dict.fromkeys(client_of(one) for one in leaves if not history.is_after_failure(one.received_ns))
            cause = f"members left and others joined {returns} times"
            cause += f" (clients that left: {listed(leavers, 10)})" if leavers else ""
            yield _loop(history, group_id, begun, cause)


def _returns(states: list[GroupState]) -> int:
    """Return how often the number of members rose after it had fallen."""
    returns, before, has_fallen = 0, 0, False
    for event in states:
        if event.members > before and has_fallen:
            returns, has_fallen = returns + 1, False
        has_fallen = has_fallen or event.members < before
        before = event.members
    return returns


def _loop(history: History, group_id: str, begun: list[GroupState], cause: str) -> Found:
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


_COMMITS = ("OffsetCommit", "TxnOffsetCommit")


def commit_went_back(history: History) -> Iterator[Found]:
    last: dict[tuple[str, str, int], tuple[int, Request]] = {}
    reported: set[tuple[str, str, int]] = set()
    for request in history.apis(*_COMMITS):
        if has_failed(request):
            continue
        for partition in request.partitions:
            key = request.group_id, partition.topic, partition.partition
            if partition.offset == NO_ID:
                continue
            before = last.get(key)
            last[key] = partition.offset, request
            if before is not None and partition.offset < before[0] and key not in reported:
                reported.add(key)
                yield _went_back(history, key, before, last[key])


def _went_back(
    history: History, key: tuple[str, str, int], before: tuple[int, Request], after: tuple[int, Request]
) -> Found:
    group_id, topic, partition = key
    name = f"{topic}-{partition}"
    offset, request = after
    who = client_of(request)
    earlier = client_of(before[1])
    title = f"Group {group_id} committed {name} back from {before[0]} to {offset}"
    text = f"Client {who} committed offset {offset} at {history.when(request.received_ns)}, after client {earlier} had "
    text += f"committed {before[0]} at {history.when(before[1].received_ns)}. {before[0] - offset} records can be read "
    text += "again." if who == earlier else "again. The first client may have committed after it lost the partition."
    seqs = [before[1].seq, request.seq]
    return Found("commit-went-back", "warning", title, text, request.received_ns, seqs, [group_id, topic, who])


def acquisition_timeouts(history: History) -> Iterator[Found]:
    """Yield records of a share group (KIP-932) that a member acquired, and did not acknowledge in time."""
    for (group_id, topic), alike in grouped(
        history.of(AcquisitionTimeout), lambda one: (one.group_id, one.topic)
    ).items():
        first = alike[0]
        records = sum(one.last_offset - one.first_offset + 1 for one in alike)
        members = dict.fromkeys(one.member_id for one in alike)
        title = f"Group {group_id} did not acknowledge {counted(records, 'record')} of {topic} in time"
        text = f"The acquisition locks of {listed(members)} timed out, the first at {history.when(first.at_ns)}. "
        text += "The records are delivered again. Process fewer records per poll, or increase "
        text += "group.share.record.lock.duration.ms."
        yield Found("acquisition-timeout", "warning", title, text, first.at_ns, seqs(alike), [group_id, topic])


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
