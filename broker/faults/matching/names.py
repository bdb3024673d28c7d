"""What a request names, for rules that are about certain topics, partitions, groups or transactional ids."""

from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from sluice.broker.metadata.topic import JOURNAL_TOPIC
from sluice.broker.requests.request_names import (
    FIND_COORDINATOR,
    GROUP_IDS,
    HOLDERS,
    PARTITIONS,
    TOPICS,
    TRANSACTIONAL_IDS,
    groups_in,
    name_of,
    partitions_in,
    transactional_ids_in,
)
from sluice.protocol.apis import API_KEYS, FETCH, PRODUCE
from sluice.protocol.message import Message, fields_of

if TYPE_CHECKING:
    from sluice.broker.requests.context import RequestContext
    from sluice.protocol.apis.fetch import FetchRequest
    from sluice.protocol.apis.produce import ProduceRequest

_METADATA, _DESCRIBE_TOPIC_PARTITIONS, _CONSUMER_GROUP_HEARTBEAT = 3, 75, 68
# Their requests name topics, of which the answers tell all partitions.
_TELL_PARTITIONS = (_METADATA, _DESCRIBE_TOPIC_PARTITIONS)


class Named(NamedTuple):
    """Topics with their partitions (WHOLE_TOPIC: all of them), groups, transactional ids."""

    partitions: list[tuple[str, int]]
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    all_topics: bool = False  # it asks for whatever topics there are

    @property
    def is_about_the_journal(self) -> bool:
        """Whether it is about the journal's own topic and no other: what watches faults is not hit by them."""
        return bool(self.partitions) and all(topic == JOURNAL_TOPIC for topic, _ in self.partitions)


class Reader(Protocol):
    """Reads what the requests of one API name."""

    def __call__(self, ctx: "RequestContext", request: Message) -> Named: ...


@cache
def fields_named(api_key: int) -> frozenset[str]:
    """Which of a rule's fields the requests of an API can be matched by: topic, partition, group, transactional_id."""
    if api_key == FIND_COORDINATOR:
        return frozenset({"group", "transactional_id"})
    found = set(_fields_named(API_KEYS[api_key].request))
    if api_key in _TELL_PARTITIONS:
        found.add("partition")
    return frozenset(found)


def _fields_named(request: type[Message]) -> set[str]:
    found = set()
    for field in fields_of(request):
        below = {inner.name for inner in fields_of(field.struct)} if field.struct is not None else set()
        if field.name in TOPICS:
            found |= {"topic", "partition"} if below & {*PARTITIONS} else {"topic"}
        if field.name in GROUP_IDS:
            found.add("group")
        if field.name in TRANSACTIONAL_IDS:
            found.add("transactional_id")
        if field.name in HOLDERS and field.struct is not None:
            found |= _fields_named(field.struct)
    return found


def reader_of(api_key: int) -> Reader:
    """What reads what the requests of an API name."""
    if api_key == PRODUCE:
        return cast("Reader", _of_produce)  # its requests are of that type
    if api_key == FETCH:
        return cast("Reader", _of_fetch)  # the same
    return partial(_of_any, api_key)


def _of_produce(ctx: "RequestContext", request: "ProduceRequest") -> Named:
    topics_by_id = ctx.broker.cluster.topics_by_id
    partitions = [
        (topic.name or name_of(topic.topic_id, topics_by_id), item.index)
        for topic in request.topic_data
        for item in topic.partition_data
    ]
    return Named(partitions, [], [request.transactional_id] if request.transactional_id else [])


def _of_fetch(ctx: "RequestContext", request: "FetchRequest") -> Named:
    """What it names, and what its session has besides."""
    topics_by_id = ctx.broker.cluster.topics_by_id
    partitions = [
        (topic.topic or name_of(topic.topic_id, topics_by_id), item.partition)
        for topic in request.topics
        for item in topic.partitions
    ]
    sessions = ctx.broker.fetch_sessions_in_use
    if request.session_epoch > 0 and sessions is not None:
        partitions += sessions.partitions_of(request.session_id)
    return Named(partitions)


def _of_any(api_key: int, ctx: "RequestContext", request: Message) -> Named:
    return Named(
        list(partitions_in(request, ctx.broker.cluster.topics_by_id)),
        groups_in(api_key, request),
        transactional_ids_in(api_key, request),
        _asks_for_all(api_key, ctx.version, request),
    )


def _asks_for_all(api_key: int, version: int, request: Message) -> bool:
    if api_key == _CONSUMER_GROUP_HEARTBEAT:
        return False  # there null is "as before"
    topics = [getattr(holder, name, ()) for holder in (request, *_groups(request)) for name in TOPICS]
    empty_is_all = api_key == _DESCRIBE_TOPIC_PARTITIONS or (api_key == _METADATA and version == 0)
    return None in topics or (empty_is_all and not any(topics))


def _groups(request: Message) -> list[Message]:
    return [item for item in getattr(request, "groups", None) or () if isinstance(item, Message)]
