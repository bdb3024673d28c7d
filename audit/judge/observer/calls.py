"""Requests other than Produce: a sequence is a failed request with its retries, up to the first success.

Repeated requests are not retries unless one failed. Requests are of the same kind if client, API and subject (group,
transactional id or topics) are the same. Two pairs of APIs count as one operation:

- JoinGroup and the SyncGroup that follows its success; after a failed SyncGroup the client may retry with either.
- ConsumerGroupDescribe (KIP-848), and DescribeGroups for classic groups. Kafka's client retries with the second after a
  backoff and counts the attempt, even if the broker does not support the first (AdminApiDriver). For clients that send
  the second at once, both are one attempt.
"""

from collections.abc import Iterable

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
            "AlterConfigs",
            "AlterPartitionReassignments",
            "ConsumerGroupDescribe",
            "CreateAcls",
            "CreatePartitions",
            "CreateTopics",
            "DeleteAcls",
            "DeleteGroups",
            "DeleteRecords",
            "DeleteTopics",
            "DescribeAcls",
            "DescribeCluster",
            "DescribeConfigs",
            "DescribeGroups",
            "ElectLeaders",
            "IncrementalAlterConfigs",
            "ListGroups",
            "ListPartitionReassignments",
            "OffsetDelete",
        ),
        Kind.ADMIN,
    ),
}
_SAME = {"SyncGroup": "JoinGroup", "ConsumerGroupDescribe": "DescribeGroups"}
_AT_ONCE_NS = 40_000_000  # shorter than any client's backoff
_MOST_TOPICS_IN_KEY = 3


def call_sequences(events: Iterable[AnyEvent]) -> list[AttemptSequence]:
    events = list(events)
    outcomes = Outcomes(events)
    requests = (event for event in events if isinstance(event, Request) and event.api in KINDS)
    calls = _calls(sorted(requests, key=lambda each: (each.received_ns, each.seq)), outcomes)
    open_ones: dict[str, AttemptSequence] = {}
    incidents: dict[str, int] = {}
    made: list[AttemptSequence] = []
    for request, attempt in calls:
        what = _operation(request)
        if request.api == "JoinGroup":
            open_ones.pop(_heartbeats(request), None)
        found = open_ones.get(what)
        if found is None:
            if attempt.outcome is Outcome.SUCCEEDED:
                continue
            incidents[what] = number = incidents.get(what, 0) + 1
            key = what if number == 1 else f"{what} #{number}"
            found = AttemptSequence(kind=_kind(request), key=key, attempts=[])
            open_ones[what] = found
            made.append(found)
        found.attempts.append(attempt)
        if attempt.outcome is Outcome.SUCCEEDED:
            del open_ones[what]
    return made


def _operation(request: Request) -> str:
    client = request.client_id or request.software_name or request.peer.rpartition(":")[0]
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
