"""Members that a group lost against their will: fenced, expired, or too late for a rebalance.

- fenced: another member has the same `group.instance.id`, or the member's epoch is not that of the group;
- expired: no heartbeat for longer than the session timeout;
- poll too late: the member sent heartbeats, but did not join a rebalance within its rebalance timeout, which is
  `max.poll.interval.ms` in the Java client; or it left the group itself for that reason.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sluice.journal_events import GroupState, Request
from sluice.protocol.errors import ErrorCode, name_of
from sluice.trace.described import counted, has_failed

from .history import NS_PER_MS, Found, History, client_of, duration, grouped, listed, number_value, seqs, text_value

_FENCED = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
MEMBER_CODES = _FENCED | {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION}
_OF_MEMBERS = (
    *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "TxnOffsetCommit"),
    *("ConsumerGroupHeartbeat",),
)
_SLACK = 1.5  # an expiration is noticed by the end of a rebalance
_CLOSES_WITHIN_NS = 500 * NS_PER_MS  # a consumer that is closed leaves, and disconnects
_HEARTBEAT_INTERVAL_NS = 3_000 * NS_PER_MS  # Kafka's default
_REMEDY = (
    "If the time between two polls was above max.poll.interval.ms, process fewer records per poll (max.poll.records), "
    "or increase the interval."
)
_LEFT_EPOCHS = (-1, -2)  # of a ConsumerGroupHeartbeat (KIP-848)


class _Member(NamedTuple):
    """The requests of a member, as they were received."""

    group_id: str
    member_id: str
    requests: list[Request]

    @property
    def client(self) -> str:
        return client_of(self.requests[0])

    def timeout_ns(self, name: str) -> int:
        """Return the last session or rebalance timeout that it sent; -1 if it is unknown."""
        values = [number_value(each.sent, name) for each in reversed(self.requests)]
        return next((value for value in values if value >= 0), -1) * NS_PER_MS


def member_lost(history: History) -> Iterator[Found]:
    members = _members(history)
    for member in members:
        failed = [one for one in member.requests if not one.rule_id and not MEMBER_CODES.isdisjoint(one.error_codes)]
        if failed:
            yield _rejected(history, member, failed, members)
        elif (found := _silently_expired(history, member)) is not None:
            yield found
    yield from _left_late(history)


def _members(history: History) -> list[_Member]:
    requests = grouped(history.apis(*_OF_MEMBERS), _member_key)
    return [_Member(*key, of_member) for key, of_member in requests.items() if key[1]]


def _member_key(request: Request) -> tuple[str, str]:
    member = text_value(request.sent, "member_id")
    if not member and not request.error_codes:
        member = text_value(request.returned, "member_id")
    if not member:
        left = request.sent.get("members")
        member = left[0] if isinstance(left, list) and len(left) == 1 else ""
    return request.group_id, member


def _rejected(history: History, member: _Member, failed: list[Request], members: list[_Member]) -> Found:
    first = failed[0]
    code = next(code for code in first.error_codes if code in MEMBER_CODES)
    names = [member.client, member.group_id, member.member_id]
    text = f"{first.api} at {history.when(first.received_ns)} failed with {name_of(code)}"
    shown = seqs(failed)
    if code in _FENCED:
        title = f"Client {member.client} was fenced from group {member.group_id}"
        text += f".{_twin(first, member, members)}"
        return Found("member-fenced", "error", title, text, first.received_ns, shown, names)
    last = _last_contact(member, first)
    gap_ns = first.received_ns - last.received_ns if last is not None else 0
    session_ns = member.timeout_ns("session_timeout_ms")
    if 0 < session_ns < gap_ns and last is not None:
        title = f"Client {member.client} expired in group {member.group_id}"
        text += f", {duration(gap_ns)} after its last request to the coordinator. "
        text += f"session.timeout.ms is {session_ns // NS_PER_MS}. {_reason(member, last)}"
        return Found("member-expired", "error", title, text, first.received_ns, [last.seq, *shown], names)
    rebalance_ns = member.timeout_ns("rebalance_timeout_ms")
    waited_ns = _rebalance_ns(history, member.group_id, first)
    if 0 < rebalance_ns <= waited_ns * _SLACK:
        title = f"Client {member.client} polled too late for a rebalance of group {member.group_id}"
        text += f". It did not join the rebalance, which took {duration(waited_ns)}, within "
        text += f"max.poll.interval.ms={rebalance_ns // NS_PER_MS}, while it sent heartbeats."
        return Found("poll-too-late", "error", title, text, first.received_ns, shown, names)
    title = f"Client {member.client} is no longer a member of group {member.group_id}"
    text += f" ({counted(len(failed), 'request')}). Its member id or generation was not valid any more."
    return Found("member-lost", "warning", title, text, first.received_ns, shown, names)


def _twin(request: Request, member: _Member, members: list[_Member]) -> str:
    instance = text_value(request.sent, "group_instance_id") or text_value(request.sent, "instance_id")
    if not instance:
        return ""
    others = {
        client_of(each)
        for other in members
        if other.member_id != member.member_id and other.group_id == member.group_id
        for each in other.requests
        if instance in (text_value(each.sent, "group_instance_id"), text_value(each.sent, "instance_id"))
    }
    twins = f", as clients {', '.join(sorted(others))} do" if others else ""
    return f" Its group.instance.id is {instance}: another consumer has joined with the same id{twins}."


def _last_contact(member: _Member, before: Request) -> Request | None:
    """Return the last request before one that the coordinator answered without an error."""
    earlier = [one for one in member.requests if one.received_ns < before.received_ns and not has_failed(one)]
    return earlier[-1] if earlier else None


def _reason(member: _Member, last: Request) -> str:
    """Return why the coordinator got nothing from a member after its last request."""
    rules = {one.rule_id for one in member.requests if one.received_ns > last.received_ns and one.rule_id}
    if rules:
        return f"Fault rule {listed(sorted(rules))} hit its requests since then."
    return "The consumer ended without leaving the group, was blocked, or was disconnected."


def _rebalance_ns(history: History, group_id: str, before: Request) -> int:
    """Return how long the last rebalance of a group before a request took."""
    began_ns = took_ns = 0
    for event in history.of(GroupState):
        if event.group_id != group_id or event.at_ns > before.at_ns:
            continue
        if event.after == "PreparingRebalance":
            began_ns = event.at_ns
        elif began_ns:
            took_ns, began_ns = event.at_ns - began_ns, 0
    return took_ns


def _silently_expired(history: History, member: _Member) -> Found | None:
    """Return the finding of a member that stopped without a word, so that its group rebalanced."""
    last = ([one for one in member.requests if not has_failed(one)] or member.requests)[-1]
    session_ns = member.timeout_ns("session_timeout_ms")
    has_left = last.api == "LeaveGroup" or last.sent.get("member_epoch") in _LEFT_EPOCHS
    if has_left or session_ns <= 0:
        return None
    due_ns = max(last.received_ns, last.at_ns) + session_ns
    rebalanced = [
        event
        for event in history.of(GroupState)
        if event.group_id == member.group_id
        and event.after in ("PreparingRebalance", "Empty")
        and abs(event.at_ns - due_ns) <= session_ns * (_SLACK - 1)
    ]
    if not rebalanced:
        return None
    at_ns = rebalanced[0].at_ns
    title = f"Client {member.client} expired in group {member.group_id}"
    text = f"Its last request was {last.api} at {history.when(last.received_ns)}; the group removed it at "
    text += f"{history.when(at_ns)}. session.timeout.ms is {session_ns // NS_PER_MS}. "
    text += _reason(member, last)
    if session_ns <= _HEARTBEAT_INTERVAL_NS:
        text += " heartbeat.interval.ms (default 3000) has to be below a third of the session timeout."
    names = [member.client, member.group_id, member.member_id]
    return Found("member-expired", "warning", title, text, at_ns, [last.seq, rebalanced[0].seq], names)


def _left_late(history: History) -> Iterator[Found]:
    for request in history.apis("LeaveGroup"):
        reason = text_value(request.sent, "reason")
        client, names = client_of(request), [client_of(request), request.group_id]
        closed = history.closed.get(request.connection)
        if "poll" in reason:
            title = f"Client {client} left group {request.group_id}: it polled too late"
            text = f'At {history.when(request.received_ns)}, it left with the reason "{reason}". {_REMEDY}'
            yield Found("poll-too-late", "error", title, text, request.received_ns, [request.seq], names)
        elif not reason and (closed is None or closed.at_ns - request.at_ns > _CLOSES_WITHIN_NS):
            title = f"Client {client} left group {request.group_id}, and stayed connected"
            text = f"At {history.when(request.received_ns)}, it left without a reason: it polled too late, or it "
            text += f"unsubscribed. {_REMEDY}"
            yield Found("poll-too-late", "warning", title, text, request.received_ns, [request.seq], names)
