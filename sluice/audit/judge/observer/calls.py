"""Requests other than Produce: a sequence is a failed request with its retries, up to the first success.

Repeated requests are not retries unless one failed. A client that has done meanwhile what it needed the response for
has stopped trying: a request after that is a new call (`_PROOFS`). If a failure of that work precedes it immediately,
it is the cause. Otherwise its cause is not known, and the sequence is doubtful: it may continue. Without a response, a
client keeps what it knows, and may work while it retries: only an immediate failure makes the sequence doubtful.
 Requests are of the same kind if client, API and subject (group,
transactional id or topics) are the same. Two pairs of APIs count as one operation:

- JoinGroup and the SyncGroup that follows its success; after a failed SyncGroup the client may retry with either.
- ConsumerGroupDescribe (KIP-848), and DescribeGroups for classic groups. Kafka's client retries with the second after a
  backoff and counts the attempt, even if the broker does not support the first (AdminApiDriver). For clients that send
  the second at once, both are one attempt.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable
from typing import NamedTuple

import msgspec

from sluice.audit.judge.model.attempts import Attempt, AttemptSequence, Kind, Outcome
from sluice.journal_events import AnyEvent, Request

from .outcomes import Outcomes

KINDS = {
    "Metadata": Kind.METADATA,
    "Fetch": Kind.FETCH,
    "ListOffsets": Kind.LIST_OFFSETS,
    "FindCoordinator": Kind.FIND_COORDINATOR,
    "JoinGroup": Kind.JOIN_GROUP,
    "SyncGroup": Kind.SYNC_GROUP,
    "Heartbeat": Kind.HEARTBEAT,
    "ConsumerGroupHeartbeat": Kind.HEARTBEAT,
    "OffsetCommit": Kind.OFFSET_COMMIT,
    "OffsetFetch": Kind.OFFSET_FETCH,
    "InitProducerId": Kind.INIT_PRODUCER_ID,
    **dict.fromkeys(
        (
            "AlterConfigs", "AlterPartitionReassignments", "ConsumerGroupDescribe", "CreateAcls", "CreatePartitions",
            "CreateTopics", "DeleteAcls", "DeleteGroups", "DeleteRecords", "DeleteTopics", "DescribeAcls",
            "DescribeCluster", "DescribeConfigs", "DescribeGroups", "ElectLeaders", "IncrementalAlterConfigs",
            "ListGroups", "ListPartitionReassignments", "OffsetDelete",
        ),
        Kind.ADMIN,
    ),
}  # fmt: skip
# By API: the requests, of the same group or topics, that a client sends only after it succeeded or was given up.
_WORK_ON_PARTITIONS = frozenset({"Produce", "Fetch", "ListOffsets"})
_WORK_AT_COORDINATOR = frozenset(
    {
        "JoinGroup", "SyncGroup", "Heartbeat", "ConsumerGroupHeartbeat", "OffsetCommit", "OffsetFetch",
        "InitProducerId", "AddPartitionsToTxn", "TxnOffsetCommit", "EndTxn",
    }
)  # fmt: skip
_HEARTBEATS = frozenset({"Heartbeat"})
_PROOFS = {
    "Metadata": _WORK_ON_PARTITIONS,
    "ListOffsets": frozenset({"Fetch"}),
    "InitProducerId": frozenset({"Produce"}),
    "FindCoordinator": _WORK_AT_COORDINATOR,
    "JoinGroup": _HEARTBEATS,
}
WORKED_MEANWHILE = (
    "the client worked between these requests, so each may be a new call instead of a retry of the one before"
)
_SAME = {"SyncGroup": "JoinGroup", "ConsumerGroupDescribe": "DescribeGroups"}
_AT_ONCE_NS = 40_000_000  # shorter than any client's backoff
_MOST_TOPICS_IN_KEY = 3
_NUMBER = " #"  # precedes the number of a sequence in its key


def call_sequences(events: Iterable[AnyEvent]) -> list[AttemptSequence]:
    events = list(events)
    outcomes = Outcomes(events)
    requests = (event for event in events if isinstance(event, Request) and event.api in KINDS)
    calls = _calls(sorted(requests, key=lambda each: (each.received_ns, each.seq)), outcomes)
    proofs = _Proofs(events)
    open_ones: dict[str, AttemptSequence] = {}
    incidents: dict[str, int] = {}
    made: list[AttemptSequence] = []
    for request, attempt in calls:
        what = _operation(request)
        if request.api == "JoinGroup":
            open_ones.pop(_heartbeats(request), None)
        found, doubt = open_ones.get(what), ""
        if found is not None:
            last = found.attempts[-1]
            end = proofs.between(request, last, attempt)
            has_response = last.outcome is Outcome.ERROR
            if end is not None and (has_response or end.caused(attempt)):
                doubt = "" if has_response and end.caused(attempt) else WORKED_MEANWHILE
                found = None
                del open_ones[what]
        if found is None:
            if attempt.outcome is Outcome.SUCCEEDED:
                continue
            incidents[what] = number = incidents.get(what, 0) + 1
            key = what if number == 1 else f"{what}{_NUMBER}{number}"
            found = AttemptSequence(kind=_kind(request), key=key, attempts=[], doubt=doubt)
            open_ones[what] = found
            made.append(found)
        found.attempts.append(attempt)
        if attempt.outcome is Outcome.SUCCEEDED:
            del open_ones[what]
    return made


def operation_of(sequence: AttemptSequence) -> str:
    return sequence.key.partition(_NUMBER)[0]


def intervals_ns(events: Iterable[AnyEvent], apis: Container[str] = KINDS) -> dict[str, list[int]]:
    """Return by operation the times from a successful request to the next one, which is no retry."""
    requests = (event for event in events if isinstance(event, Request) and event.api in apis)
    last: dict[str, Request] = {}
    found: dict[str, list[int]] = {}
    for request in sorted(requests, key=_received_ns):
        what = _operation(request)
        before = last.get(what)
        if before is not None and not _has_failed(before):
            found.setdefault(what, []).append(request.received_ns - before.received_ns)
        last[what] = request
    return found


class _Proof(NamedTuple):
    """The last completed request that shows that a client had stopped trying."""

    at_ns: int
    has_failed: bool

    def caused(self, attempt: Attempt) -> bool:
        return self.has_failed and attempt.at_ns - self.at_ns <= _AT_ONCE_NS


class _Proofs:
    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self._by_client: dict[str, list[Request]] = {}
        wanted = frozenset().union(*_PROOFS.values())
        for event in events:
            if isinstance(event, Request) and event.api in wanted:
                self._by_client.setdefault(_client(event), []).append(event)
        for requests in self._by_client.values():
            requests.sort(key=_received_ns)

    def between(self, request: Request, before: Attempt, attempt: Attempt) -> _Proof | None:
        """Return the last proof that was sent after an attempt ended, and completed before the next one."""
        apis = _PROOFS.get(_SAME.get(request.api, request.api))
        if apis is None:
            return None
        every = self._by_client.get(_client(request), [])
        first = bisect_right(every, before.at_ns if before.ended_ns is None else before.ended_ns, key=_received_ns)
        found = [
            one
            for one in every[first : bisect_left(every, attempt.at_ns, key=_received_ns)]
            if one.at_ns <= attempt.at_ns and one.api in apis and _is_about_the_same(request, one)
        ]
        if not found or (apis == _HEARTBEATS and all(map(_has_failed, found))):
            return None  # heartbeats may fail while a member rejoins
        last = max(found, key=lambda one: one.at_ns)
        return _Proof(last.at_ns, _has_failed(last))


def _received_ns(request: Request) -> int:
    return request.received_ns


def _has_failed(request: Request) -> bool:
    return bool(request.error_codes) or request.answered_ns is None


def _is_about_the_same(one: Request, other: Request) -> bool:
    if one.group_id or other.group_id:
        return one.group_id == other.group_id
    if one.transactional_id and other.transactional_id:
        return one.transactional_id == other.transactional_id
    topics, others = ({each.topic for each in request.partitions} for request in (one, other))
    return not topics or not others or not topics.isdisjoint(others)


def _client(request: Request) -> str:
    return request.client_id or request.software_name or request.peer.rpartition(":")[0]


def _operation(request: Request) -> str:
    client = _client(request)
    about = request.group_id or request.transactional_id
    if not about:
        topics = list(dict.fromkeys(each.topic for each in request.partitions))
        about = ",".join(topics[:_MOST_TOPICS_IN_KEY])
    return f"{client} {_SAME.get(request.api, request.api)} {about}".rstrip()


def _heartbeats(request: Request) -> str:
    return _operation(msgspec.structs.replace(request, api="Heartbeat"))


def _kind(request: Request) -> Kind:
    return KINDS[_SAME.get(request.api, request.api)]


def _calls(requests: Iterable[Request], outcomes: Outcomes) -> list[tuple[Request, Attempt]]:
    calls: list[tuple[Request, Attempt]] = []
    begun: dict[str, int] = {}  # by operation: index of the attempt whose second request may follow
    for request in requests:
        attempt = outcomes.attempt(request)
        what = _operation(request)
        number = begun.pop(what, None)
        if number is not None and _is_second_half(calls[number], request):
            first, began = calls[number]
            calls[number] = first, msgspec.structs.replace(attempt, at_ns=began.at_ns)
            continue
        if request.api == "ConsumerGroupDescribe" or (
            request.api == "JoinGroup" and attempt.outcome is Outcome.SUCCEEDED
        ):
            begun[what] = len(calls)
        calls.append((request, attempt))
    return calls


def _is_second_half(begun: tuple[Request, Attempt], request: Request) -> bool:
    first, attempt = begun
    if first.api == "JoinGroup":
        return request.api == "SyncGroup"
    ended_ns = attempt.at_ns if attempt.ended_ns is None else attempt.ended_ns
    return request.api == "DescribeGroups" and request.received_ns - ended_ns <= _AT_ONCE_NS
