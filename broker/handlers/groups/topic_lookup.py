"""Topics of the three APIs that change committed offsets (KafkaApis): lookup, authorization, order of the response."""

from collections.abc import Callable, Hashable, Iterable
from itertools import chain
from typing import TypeVar

from sluice.broker.broker import Broker
from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import RequestContext
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID

_Topic = TypeVar("_Topic", bound=Message)


def authorized_topics(
    ctx: RequestContext, broker: Broker, requested: Iterable[tuple[str, bytes]], *, by_id: bool
) -> list[Topic | ErrorCode]:
    """Look up each name or id. Errors do not reveal whether a denied topic exists."""
    found: list[Topic | ErrorCode] = ctx.array()
    names: list[str] = ctx.array()
    for name, topic_id in requested:
        one = find_topic(broker.metadata, name, topic_id, by_id=by_id)
        found.append(one)
        names.append(name if isinstance(one, ErrorCode) else one.name)
    denied = broker.auth.filter_denied(ctx, AclOperation.READ, ResourceType.TOPIC, names)
    return [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED if name in denied and one != ErrorCode.UNKNOWN_TOPIC_ID else one
        for one, name in zip(found, names, strict=True)
    ]


def find_topic(metadata: MetadataCache, name: str, topic_id: bytes, *, by_id: bool) -> Topic | ErrorCode:
    if by_id:
        topic = metadata.topics_by_id.get(topic_id) if topic_id != ZERO_UUID else None
        return ErrorCode.UNKNOWN_TOPIC_ID if topic is None else topic
    return metadata.topics.get(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def partition_error(topic: Topic | ErrorCode, index: int) -> ErrorCode:
    if isinstance(topic, ErrorCode):
        return topic
    return ErrorCode.NONE if topic.partition(index) is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def merge_topics(
    ctx: RequestContext, failed: list[_Topic], accepted: list[_Topic], key: Callable[[_Topic], Hashable]
) -> list[_Topic]:
    """Return the topics of a response: first those with partitions that failed before the coordinator got them.

    Repeated topics are merged only if there is such a topic, as Kafka's response builders do.
    """
    if not failed:
        return accepted
    merged: dict[Hashable, _Topic] = {}
    for topic in chain(failed, accepted):
        known = merged.setdefault(key(topic), topic)
        if known is not topic:
            known.partitions.extend(topic.partitions)  # type: ignore[attr-defined]  # topics of a response have them
    return list(merged.values())
