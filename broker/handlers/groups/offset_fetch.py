"""OffsetFetch, key 9, versions 0-10: the offsets that a group committed; from v2 on all of them for null.

v2 has an error for the whole group, v5 leader epochs (KIP-320), v7 asks for stable offsets only: not while a
transaction may replace them (KIP-447); v8 asks for many groups (KIP-709), v9 says who asks (KIP-848), v10 has topic ids
(KIP-516). Follows KafkaApis.handleOffsetFetchRequest and OffsetMetadataManager.fetchOffsets. For v0, offsets that
are not there are UNKNOWN_TOPIC_OR_PARTITION, as they were when Kafka kept them in ZooKeeper.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from sluice.broker.coordinator.group.offsets import CommittedOffset, TopicPartition
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID

from .replicated_response import Lost, respond_when_replicated

if TYPE_CHECKING:
    from sluice.broker.handlers.services import GroupServices

API = served("OffsetFetch", "0-10")

_KAFKA_SINCE = 1
_GROUP_ERRORS_SINCE = 2
_MANY_GROUPS_SINCE = 8
_TOPIC_IDS_SINCE = 10
_NO_OFFSET = -1


class _Wanted(NamedTuple):
    """A topic that was asked for: as the client named it, and as it is called here."""

    name: str  # empty for an id that nobody has
    topic_id: bytes
    partition_indexes: Iterable[int]


def handle(ctx: RequestContext, request: OffsetFetchRequest, broker: "GroupServices") -> Message | Outcome:
    """One answer for each partition that was asked for, or for each that has an offset."""
    asked = request.groups if ctx.version >= _MANY_GROUPS_SINCE else [_one_group(request)]
    groups = [_fetch(ctx, broker, group, request.require_stable) for group in asked]

    def respond(lost: Lost) -> OffsetFetchResponse:
        told = [
            _lost(ctx, group) if group.group_id in lost else found for group, found in zip(asked, groups, strict=True)
        ]
        return OffsetFetchResponse(groups=told) if ctx.version >= _MANY_GROUPS_SINCE else _of_one_group(told[0])

    return respond_when_replicated(ctx, broker, [found.group_id for found in groups if not found.error_code], respond)


def _one_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """What a version before 8 asks for."""
    topics = request.topics
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=one.name, partition_indexes=one.partition_indexes) for one in topics],
    )


def _lost(ctx: RequestContext, asked: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    """Consumers of this API do not know COORDINATOR_NOT_AVAILABLE; told this, they look for the coordinator anew."""
    return _refused_group(ctx, asked, ErrorCode.NOT_COORDINATOR)


def _of_one_group(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=one.partition_index,
                        committed_offset=one.committed_offset,
                        committed_leader_epoch=one.committed_leader_epoch,
                        metadata=one.metadata,
                        error_code=one.error_code,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def _fetch(
    ctx: RequestContext, broker: "GroupServices", asked: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    if not broker.auth.authorize(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, asked.group_id):
        return _refused_group(ctx, asked, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    groups = broker.groups
    group = groups.groups.get(asked.group_id)
    if group is None:
        error = groups.shards.error(asked.group_id)
    else:
        error = group.offset_fetch_error(asked.member_id, asked.member_epoch)
    if error:
        return _refused_group(ctx, asked, error)
    offsets = groups.offsets.of_group(asked.group_id)
    unstable = groups.offsets.unstable(asked.group_id) if require_stable else ()
    wanted = list(_all(ctx, broker, offsets) if asked.topics is None else _named(ctx, broker, asked.topics))
    hidden = broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, [topic.name for topic in wanted])
    topics = []
    for topic in wanted:
        if topic.name in hidden and asked.topics is None:
            continue
        answers = []
        for index in topic.partition_indexes:
            partition = topic.name, index
            if ctx.version >= _TOPIC_IDS_SINCE and not topic.name:
                answers.append(_refused(ctx, index, ErrorCode.UNKNOWN_TOPIC_ID))
            elif topic.name in hidden:
                answers.append(_refused(ctx, index, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif partition in unstable:
                answers.append(_refused(ctx, index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            else:
                answers.append(_answer(ctx, topic, index, offsets.get(partition)))
        topics.append(OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=answers))
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _refused_group(ctx: RequestContext, asked: OffsetFetchRequestGroup, error: ErrorCode) -> OffsetFetchResponseGroup:
    """The error of a group; where there is no place for it, of each of its partitions."""
    ctx.error_code = ctx.error_code or error
    if ctx.version >= _GROUP_ERRORS_SINCE:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error)
    topics = [
        OffsetFetchResponseTopics(
            name=topic.name, partitions=[_refused(ctx, index, error) for index in topic.partition_indexes]
        )
        for topic in asked.topics or ()
    ]
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _named(
    ctx: RequestContext, broker: "GroupServices", topics: Iterable[OffsetFetchRequestTopics]
) -> Iterator[_Wanted]:
    for topic in topics:
        name = topic.name
        if ctx.version >= _TOPIC_IDS_SINCE:
            known = broker.metadata.topics_by_id.get(topic.topic_id)
            name = known.name if known is not None else ""
        yield _Wanted(name, topic.topic_id, topic.partition_indexes)


def _all(ctx: RequestContext, broker: "GroupServices", offsets: Iterable[TopicPartition]) -> Iterator[_Wanted]:
    for name, partitions in groupby(sorted(offsets), key=lambda partition: partition[0]):
        known = broker.metadata.topics.get(name)
        if known is None and ctx.version >= _TOPIC_IDS_SINCE:
            continue  # there is no way to name it
        yield _Wanted(name, ZERO_UUID if known is None else known.topic_id, [index for _, index in partitions])


def _answer(
    ctx: RequestContext, topic: _Wanted, index: int, committed: CommittedOffset | None
) -> OffsetFetchResponsePartitions:
    known = committed is not None and ZERO_UUID not in (topic.topic_id, committed.topic_id)
    of_another = known and committed is not None and topic.topic_id != committed.topic_id
    if committed is None or of_another:
        return _refused(ctx, index, ErrorCode.NONE if ctx.version >= _KAFKA_SINCE else _UNKNOWN)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _refused(ctx: RequestContext, index: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    ctx.error_code = ctx.error_code or error
    return OffsetFetchResponsePartitions(partition_index=index, committed_offset=_NO_OFFSET, error_code=error)
