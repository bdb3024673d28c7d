"""Fields of requests that the journal records: what a client has configured, and who it is in its group or transaction.

A table from API to the names of the fields and a function that reads their values. Produce and Fetch, the most frequent
requests, are read in about.py. Names are Kafka's; long values are cut, which bounds the memory of the journal.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from sluice.broker.requests.trace import Sent
from sluice.protocol.apis import ApiKey

if TYPE_CHECKING:
    from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from sluice.protocol.apis.fetch import FetchRequest
    from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
    from sluice.protocol.apis.join_group import JoinGroupRequest
    from sluice.protocol.apis.leave_group import LeaveGroupRequest
    from sluice.protocol.apis.list_offsets import ListOffsetsRequest
    from sluice.protocol.apis.metadata import MetadataRequest

_LONGEST_TEXT = 256  # characters: more than any id that a person reads
_MOST_ITEMS = 16  # of a list, as of partitions
_MEMBER = ("member_id", "group_instance_id")
_COMMIT = (*_MEMBER, "generation_id_or_member_epoch")
_JOIN = (*_MEMBER, "session_timeout_ms", "rebalance_timeout_ms", "protocol_type", "reason")
_FETCH = ("max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "session_id", "session_epoch", "replica_id")
_CONSUMER_GROUP = ("member_id", "member_epoch", "instance_id", "rebalance_timeout_ms", "server_assignor")
_read_fetch, _read_consumer_group, _read_join = attrgetter(*_FETCH), attrgetter(*_CONSUMER_GROUP), attrgetter(*_JOIN)


class SentFields(NamedTuple):
    """The fields of an API's requests: their names, and a function that returns their values."""

    names: tuple[str, ...]
    read: Callable[..., Sent]


def bounded(values: Sent) -> Sent:
    return tuple(each[:_LONGEST_TEXT] if type(each) is str else each for each in values)


def first_items(items: Iterable[str | None]) -> list[str]:
    return [item[:_LONGEST_TEXT] for item in islice(items, _MOST_ITEMS) if item is not None]


def fetch_sent(request: "FetchRequest") -> Sent:
    """Return the fields of a Fetch; `partition_max_bytes` is that of the first partition."""
    topics = request.topics
    if topics and topics[0].partitions:
        return *_read_fetch(request), topics[0].partitions[0].partition_max_bytes
    return _read_fetch(request)


def _join_group(request: "JoinGroupRequest") -> Sent:
    return (*_read_join(request), first_items(each.name for each in request.protocols))


def _leave_group(request: "LeaveGroupRequest") -> Sent:
    members = [each.member_id or each.group_instance_id for each in islice(request.members, _MOST_ITEMS)]
    return first_items(members or [request.member_id]), request.members[0].reason if request.members else None


def _list_offsets(request: "ListOffsetsRequest") -> Sent:
    partitions = request.topics[0].partitions if request.topics else ()
    return request.isolation_level, partitions[0].timestamp if partitions else None


def _metadata(request: "MetadataRequest") -> Sent:
    return request.topics is None, request.allow_auto_topic_creation


def _find_coordinator(request: "FindCoordinatorRequest") -> Sent:
    return request.key_type, first_items(request.coordinator_keys or [request.key])


def _consumer_group_heartbeat(request: "ConsumerGroupHeartbeatRequest") -> Sent:
    names = request.subscribed_topic_names
    items = None if names is None else first_items(names)
    return (*_read_consumer_group(request), request.subscribed_topic_regex, items)


def _plain(*names: str) -> SentFields:
    return SentFields(names, attrgetter(*names))


SENT: dict[int, SentFields] = {
    ApiKey.PRODUCE: _plain("acks", "timeout_ms"),
    ApiKey.FETCH: SentFields((*_FETCH, "partition_max_bytes"), fetch_sent),
    ApiKey.LIST_OFFSETS: SentFields(("isolation_level", "timestamp"), _list_offsets),
    ApiKey.METADATA: SentFields(("all_topics", "allow_auto_topic_creation"), _metadata),
    ApiKey.FIND_COORDINATOR: SentFields(("key_type", "keys"), _find_coordinator),
    ApiKey.JOIN_GROUP: SentFields((*_JOIN, "protocols"), _join_group),
    ApiKey.SYNC_GROUP: _plain(*_MEMBER, "generation_id"),
    ApiKey.HEARTBEAT: _plain(*_MEMBER, "generation_id"),
    ApiKey.LEAVE_GROUP: SentFields(("members", "reason"), _leave_group),
    ApiKey.OFFSET_COMMIT: SentFields((*_MEMBER, "generation_id"), attrgetter(*_COMMIT)),
    ApiKey.TXN_OFFSET_COMMIT: SentFields((*_MEMBER, "generation_id"), attrgetter(*_COMMIT)),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: SentFields(
        (*_CONSUMER_GROUP, "subscribed_topic_regex", "subscribed_topic_names"), _consumer_group_heartbeat
    ),
    ApiKey.INIT_PRODUCER_ID: _plain("transaction_timeout_ms", "producer_id", "producer_epoch"),
    ApiKey.END_TXN: _plain("producer_id", "producer_epoch", "committed"),
}
