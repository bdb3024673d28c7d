"""OffsetDelete, key 47, version 0: deletes committed offsets of topics without subscribers in the group (KIP-496).

Follows KafkaApis.handleOffsetDeleteRequest and OffsetMetadataManager.deleteOffsets.
"""

from typing import TYPE_CHECKING

from sluice.broker.coordinator.group.offsets import TopicPartition
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
from .topic_lookup import authorized_topics, partition_error

if TYPE_CHECKING:
    from sluice.broker.handlers.services import GroupServices

API = served("OffsetDelete", "0")

# Offsets that are deleted together, before other requests are served: 2 ms.
_AT_ONCE = 1000


def handle(ctx: RequestContext, request: OffsetDeleteRequest, broker: "GroupServices") -> Message | Outcome:
    if not broker.auth.authorize(ctx, AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        ctx.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    found = authorized_topics(
        ctx, broker, [(topic.name, ZERO_UUID) for topic in ctx.sliced(request.topics)], by_id=False
    )
    partitions: list[TopicPartition] = []
    pending: list[OffsetDeleteResponsePartition] = []  # results whose error code the coordinator returns
    topics = []
    for requested, topic in ctx.sliced(zip(request.topics, found, strict=True)):
        results = []
        for one in ctx.sliced(requested.partitions):
            error = partition_error(topic, one.partition_index)
            results.append(OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=error))
            if not error:
                partitions.append((requested.name, one.partition_index))
                pending.append(results[-1])
        topics.append(OffsetDeleteResponseTopic(name=requested.name, partitions=results))
    outcome = _delete(ctx, broker, request.group_id, partitions)
    if isinstance(outcome, ErrorCode):
        ctx.error_code = outcome
        return OffsetDeleteResponse(error_code=outcome)
    for result, code in ctx.sliced(zip(pending, outcome, strict=True)):
        result.error_code = code

    def respond(errors: ReplicationErrors) -> OffsetDeleteResponse:
        if errors:
            ctx.error_code = errors[request.group_id]
            return OffsetDeleteResponse(error_code=ctx.error_code)
        ctx.error_code = next(
            (one.error_code for topic in ctx.sliced(topics) for one in ctx.sliced(topic.partitions) if one.error_code),
            0,
        )
        return OffsetDeleteResponse(topics=topics)

    return respond_when_replicated(ctx, broker, [request.group_id], respond)


def _delete(
    ctx: RequestContext, broker: "GroupServices", group_id: str, partitions: list[TopicPartition]
) -> ErrorCode | list[ErrorCode]:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    codes: list[ErrorCode] = []
    for start in range(0, max(len(partitions), 1), _AT_ONCE):
        deleted = broker.groups.delete_offsets(group_id, partitions[start : start + _AT_ONCE])
        if isinstance(deleted, ErrorCode):
            return deleted
        codes += deleted
        ctx.pause()
    return codes
