"""OffsetFetch, key 9, versions 0-10.

v0 returns UNKNOWN_TOPIC_OR_PARTITION without a committed offset. Follows KafkaApis.handleOffsetFetchRequest and
OffsetMetadataManager.fetchOffsets.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.offsets import CommittedOffset, TopicPartition
from sluice.broker.handlers.replicated_response import ReplicationErrors, respond_when_replicated
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import offset_fetch as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID

API = served("OffsetFetch", "0-10")

_MISSING_OFFSET_OK_SINCE = 1
_GROUP_ERRORS_SINCE = 2
_BATCHED_SINCE = 8
_TOPIC_IDS_SINCE = 10
_NO_OFFSET = -1


class _RequestedTopic(NamedTuple):
    name: str  # empty for an unknown id
    topic_id: bytes
    partition_indexes: Iterable[int]


def handle(ctx: RequestContext, request: api.OffsetFetchRequest, broker: Broker) -> Message | Outcome:
    only_group = api.OffsetFetchRequestGroup(group_id=request.group_id, topics=request.topics)
    requested = request.groups if ctx.version >= _BATCHED_SINCE else [only_group]
    groups = ctx.array(_fetch(ctx, broker, group, request.require_stable) for group in requested)

    def respond(errors: ReplicationErrors) -> api.OffsetFetchResponse:
        # Consumers handle NOT_COORDINATOR here, unlike COORDINATOR_NOT_AVAILABLE.
        responses = [
            _group_error(ctx, group, ErrorCode.NOT_COORDINATOR) if group.group_id in errors else found
            for group, found in zip(requested, groups, strict=True)
        ]
        if ctx.version >= _BATCHED_SINCE:
            return api.OffsetFetchResponse(groups=responses)
        return api.OffsetFetchResponse(error_code=responses[0].error_code, topics=responses[0].topics)

    if GROUP_METADATA_TOPIC not in broker.metadata.topics:
        return respond({})
    return respond_when_replicated(
        ctx, broker, ctx.array(found.group_id for found in groups if not found.error_code), respond
    )


def _fetch(
    ctx: RequestContext, broker: Broker, requested: api.OffsetFetchRequestGroup, require_stable: bool
) -> api.OffsetFetchResponseGroup:
    if not broker.auth.authorize(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, requested.group_id):
        return _group_error(ctx, requested, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    groups = broker.groups
    group = groups.groups.get(requested.group_id)
    if group is None and GROUP_METADATA_TOPIC not in broker.metadata.topics:
        error = ErrorCode.NOT_COORDINATOR  # only FindCoordinator creates the topic
    elif group is None:
        error = groups.shards.error(requested.group_id)
    else:
        error = group.offset_fetch_error(requested.member_id, requested.member_epoch)
    if error:
        return _group_error(ctx, requested, error)
    offsets = groups.offsets.of_group(requested.group_id)
    unstable = groups.offsets.unstable(requested.group_id) if require_stable else ()
    found = ctx.array(_all(ctx, broker, offsets) if requested.topics is None else _named(ctx, broker, requested.topics))
    hidden = broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, [topic.name for topic in found])
    topics: list[api.OffsetFetchResponseTopic] = ctx.array()
    failed: list[api.OffsetFetchResponseTopic] = []
    for topic in found:
        if topic.name in hidden and requested.topics is None:
            continue
        has_no_name = ctx.version >= _TOPIC_IDS_SINCE and not topic.name
        partitions: list[api.OffsetFetchResponsePartition] = ctx.array()
        for index in topic.partition_indexes:
            partition = topic.name, index
            if has_no_name:
                partitions.append(_partition_error(ctx, index, ErrorCode.UNKNOWN_TOPIC_ID))
            elif topic.name in hidden:
                partitions.append(_partition_error(ctx, index, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            elif partition in unstable:
                partitions.append(_partition_error(ctx, index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
            else:
                partitions.append(_partition_response(ctx, topic, index, offsets.get(partition)))
        response = api.OffsetFetchResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
        (failed if has_no_name or topic.name in hidden else topics).append(response)
    topics.extend(failed)
    return api.OffsetFetchResponseGroup(group_id=requested.group_id, topics=topics)


def _group_error(
    ctx: RequestContext, requested: api.OffsetFetchRequestGroup, error: ErrorCode
) -> api.OffsetFetchResponseGroup:
    # Versions without group errors repeat it in each partition.
    ctx.error_code = ctx.error_code or error
    if ctx.version >= _GROUP_ERRORS_SINCE:
        return api.OffsetFetchResponseGroup(group_id=requested.group_id, error_code=error)
    topics = ctx.array(
        api.OffsetFetchResponseTopic(
            name=topic.name,
            partitions=ctx.array(_partition_error(ctx, index, error) for index in topic.partition_indexes),
        )
        for topic in requested.topics or ()
    )
    return api.OffsetFetchResponseGroup(group_id=requested.group_id, topics=topics)


def _named(
    ctx: RequestContext, broker: Broker, topics: Iterable[api.OffsetFetchRequestTopic]
) -> Iterator[_RequestedTopic]:
    for topic in topics:
        name = topic.name
        if ctx.version >= _TOPIC_IDS_SINCE:
            known = broker.metadata.topics_by_id.get(topic.topic_id)
            name = known.name if known is not None else ""
        yield _RequestedTopic(name, topic.topic_id, topic.partition_indexes)


def _all(ctx: RequestContext, broker: Broker, offsets: Iterable[TopicPartition]) -> Iterator[_RequestedTopic]:
    for name, partitions in groupby(ctx.array(sorted(offsets)), key=lambda partition: partition[0]):
        known = broker.metadata.topics.get(name)
        if known is None and ctx.version >= _TOPIC_IDS_SINCE:
            continue  # a deleted topic has no id
        yield _RequestedTopic(
            name, ZERO_UUID if known is None else known.topic_id, ctx.array(index for _, index in partitions)
        )


def _partition_response(
    ctx: RequestContext, topic: _RequestedTopic, index: int, committed: CommittedOffset | None
) -> api.OffsetFetchResponsePartition:
    known = committed is not None and ZERO_UUID not in (topic.topic_id, committed.topic_id)
    is_other_topic = known and committed is not None and topic.topic_id != committed.topic_id
    if committed is None or is_other_topic:
        return _partition_error(ctx, index, ErrorCode.NONE if ctx.version >= _MISSING_OFFSET_OK_SINCE else _UNKNOWN)
    return api.OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _partition_error(ctx: RequestContext, index: int, error: ErrorCode) -> api.OffsetFetchResponsePartition:
    ctx.error_code = ctx.error_code or error
    return api.OffsetFetchResponsePartition(partition_index=index, committed_offset=_NO_OFFSET, error_code=error)
