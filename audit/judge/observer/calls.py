"""Calls other than Produce: an attempt is a request, and a sequence is one that failed with all that came of it.

What is asked again and again without having failed is no retry: heartbeats, long polls, metadata by age, lookups now
and then. So a sequence begins with a request that failed, and ends with the first of the same kind that did not; one
that was right at once is a sequence of its own, of one attempt, and is left out.

The same kind: of one client, an API, and what it is about: a group, a transactional id, or topics. Two are taken
together:

- a join is JoinGroup and, where that succeeded, the SyncGroup that follows; who is told there that it failed may do
  either again;
- groups are described by ConsumerGroupDescribe (KIP-848), and those that are none of that kind by DescribeGroups. What
  failed with the first is so tried again with the second: Kafka's client waits before that, and counts it, also where
  it does not send the first since the broker does not know it (AdminApiDriver: RequestState counts what is handed out).
  Others send the second at once: both are then one try.
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
# What is tried again by another API.
_SAME = {"SyncGroup": "JoinGroup", "ConsumerGroupDescribe": "DescribeGroups"}
_AT_ONCE_NS = 40_000_000  # less than anybody waits who does
_MOST_TOPICS_IN_KEY = 3


def call_sequences(events: Iterable[AnyEvent]) -> list[AttemptSequence]:
    """Calls that failed, with the calls that came of it, by the first one."""
    events = list(events)
    outcomes = Outcomes(events)
    requests = (event for event in events if isinstance(event, Request) and event.api in KINDS)
    calls = _calls(sorted(requests, key=lambda each: (each.received_ns, each.seq)), outcomes)
    open_ones: dict[str, AttemptSequence] = {}
    incidents: dict[str, int] = {}
    made: list[AttemptSequence] = []
    for request, attempt in calls:
        what = _what(request)
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


def _what(request: Request) -> str:
    """The client, the API, and what it asks about."""
    client = request.client_id or request.software_name or request.peer.rpartition(":")[0]
    about = request.group_id or request.transactional_id
    if not about:
        topics = list(dict.fromkeys(each.topic for each in request.partitions))
        about = ",".join(topics[:_MOST_TOPICS_IN_KEY])
    return f"{client} {_SAME.get(request.api, request.api)} {about}".rstrip()


def _kind(request: Request) -> Kind:
    return KINDS[_SAME.get(request.api, request.api)]


def _calls(requests: Iterable[Request], outcomes: Outcomes) -> list[tuple[Request, Attempt]]:
    """Requests as tries, joins as one, in the order in which they began."""
    calls: list[tuple[Request, Attempt]] = []
    begun: dict[str, int] = {}  # by client and group: which of these is the first half of a try
    for request in requests:
        attempt = outcomes.attempt(request)
        what = _what(request)
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
