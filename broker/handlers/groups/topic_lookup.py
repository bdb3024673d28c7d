"""Topics of the three APIs that change committed offsets (KafkaApis): lookup, authorization, order of the response."""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Protocol, TypeVar

from sluice.broker.broker import Broker
from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import RequestContext
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID


class _Partition(Protocol):
    @property
    def partition_index(self) -> int: ...


P = TypeVar("P", bound=_Partition)
R = TypeVar("R")
Topics = list[tuple[str, bytes, list[R]]]  # name, id and results
Accepted = list[tuple[Topic, P, R]]


def check_partitions(
    ctx: RequestContext,
    broker: Broker,
    requested: Iterable[tuple[str, bytes, Iterable[P]]],
    new_result: Callable[[int, ErrorCode], R],
    *,
    by_id: bool,
) -> tuple[Topics[R], Accepted[P, R]]:
    """Return the topics of the response, and the partitions whose error code the coordinator returns.

    Errors do not reveal whether a denied topic exists.
    """
    topics = ctx.array(
        (name, id_, some, _find(broker.metadata, name, id_, by_id=by_id)) for name, id_, some in requested
    )
    names = [name if isinstance(topic, ErrorCode) else topic.name for name, _, _, topic in topics]
    denied = broker.auth.filter_denied(ctx, AclOperation.READ, ResourceType.TOPIC, names)
    accepted: Accepted[P, R] = ctx.array()
    failed_topics: Topics[R] = ctx.array()
    accepted_topics: Topics[R] = ctx.array()
    for (name, topic_id, some, found), real_name in zip(topics, names, strict=True):
        is_denied = real_name in denied and found is not ErrorCode.UNKNOWN_TOPIC_ID
        topic = ErrorCode.TOPIC_AUTHORIZATION_FAILED if is_denied else found
        failed: list[R] = ctx.array()
        kept: list[R] = ctx.array()
        for one in some:
            if isinstance(topic, ErrorCode):
                error = topic
            elif topic.partition(one.partition_index) is None:
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                result = new_result(one.partition_index, ErrorCode.NONE)
                kept.append(result)
                accepted.append((topic, one, result))
                continue
            ctx.error_code = ctx.error_code or error
            failed.append(new_result(one.partition_index, error))
        if failed or isinstance(topic, ErrorCode):
            failed_topics.append((name, topic_id, failed))
        if kept:
            accepted_topics.append((name, topic_id, kept))
    return _merged(ctx, failed_topics, accepted_topics), accepted


def fail_partitions(
    ctx: RequestContext,
    requested: Iterable[tuple[str, bytes, Iterable[P]]],
    new_result: Callable[[int, ErrorCode], R],
    code: ErrorCode,
) -> Topics[R]:
    return ctx.array(
        (name, id_, [new_result(one.partition_index, code) for one in some]) for name, id_, some in requested
    )


def _find(metadata: MetadataCache, name: str, topic_id: bytes, *, by_id: bool) -> Topic | ErrorCode:
    if by_id:
        topic = metadata.topics_by_id.get(topic_id) if topic_id != ZERO_UUID else None
        return ErrorCode.UNKNOWN_TOPIC_ID if topic is None else topic
    return metadata.topics.get(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _merged(ctx: RequestContext, failed: Topics[R], accepted: Topics[R]) -> Topics[R]:
    """Return first the topics with partitions that failed before the coordinator got them.

    Repeated topics are merged only if there is such a topic, as Kafka's response builders do.
    """
    if not failed:
        return accepted
    first: dict[tuple[str, bytes], list[R]] = ctx.mapping()
    merged: Topics[R] = ctx.array()
    for topic in chain(failed, accepted):
        name, topic_id, results = topic
        known = first.setdefault((name, topic_id), results)
        if known is results:
            merged.append(topic)
        else:
            known.extend(results)
    return merged
