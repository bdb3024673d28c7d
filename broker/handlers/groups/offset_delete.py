"""OffsetDelete, key 47, version 0 (KIP-496).

Follows KafkaApis.handleOffsetDeleteRequest and OffsetMetadataManager.deleteOffsets.
"""

from operator import attrgetter

from sluice.broker.broker import Broker
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID

from .replicated_response import ReplicationErrors, respond_when_replicated
from .topic_lookup import authorized_topics, merge_topics, partition_error

API = served("OffsetDelete", "0")

# Offsets that are deleted together, before other requests are served: 2 ms.
_AT_ONCE = 1000


def handle(ctx: RequestContext, request: OffsetDeleteRequest, broker: Broker) -> Message | Outcome:
    if not broker.auth.authorize(ctx, AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        ctx.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    found = authorized_topics(ctx, broker, ((topic.name, ZERO_UUID) for topic in request.topics), by_id=False)
    existing: list[tuple[str, OffsetDeleteResponsePartition]] = ctx.array()
    failed_topics: list[OffsetDeleteResponseTopic] = ctx.array()
    accepted_topics: list[OffsetDeleteResponseTopic] = ctx.array()
    for requested, topic in zip(request.topics, found, strict=True):
        failed: list[OffsetDeleteResponsePartition] = []
        accepted: list[OffsetDeleteResponsePartition] = []
        for one in requested.partitions:
            error = partition_error(topic, one.partition_index)
            result = OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=error)
            if error:
                ctx.error_code = ctx.error_code or error
                failed.append(result)
            else:
                accepted.append(result)
                existing.append((requested.name, result))
        if failed or isinstance(topic, ErrorCode):
            failed_topics.append(OffsetDeleteResponseTopic(name=requested.name, partitions=failed))
        if accepted:
            accepted_topics.append(OffsetDeleteResponseTopic(name=requested.name, partitions=accepted))
    topics = merge_topics(ctx, failed_topics, accepted_topics, attrgetter("name"))
    group_error = _delete(ctx, broker, request.group_id, existing)
    if group_error:
        ctx.error_code = group_error
        while topics:
            ctx.free(topics.pop().partitions)
        ctx.free(existing)
        return OffsetDeleteResponse(error_code=group_error)

    def respond(errors: ReplicationErrors) -> OffsetDeleteResponse:
        if errors:
            ctx.error_code = errors[request.group_id]
            return OffsetDeleteResponse(error_code=ctx.error_code)
        ctx.error_code = ctx.error_code or next((one.error_code for _, one in existing if one.error_code), 0)
        return OffsetDeleteResponse(topics=topics)

    return respond_when_replicated(ctx, broker, [request.group_id], respond)


def _delete(
    ctx: RequestContext,
    broker: Broker,
    group_id: str,
    existing: list[tuple[str, OffsetDeleteResponsePartition]],
) -> ErrorCode:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    start = 0
    while True:
        together = existing[start : start + _AT_ONCE]
        codes = broker.groups.delete_offsets(group_id, [(name, result.partition_index) for name, result in together])
        if isinstance(codes, ErrorCode):
            return codes
        for (_, result), code in zip(together, codes, strict=True):
            result.error_code = code
        start += len(together)
        if start == len(existing):
            return ErrorCode.NONE
        ctx.pause()
