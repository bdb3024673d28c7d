"""OffsetCommit, key 8, versions 0-10.

Follows KafkaApis.handleOffsetCommitRequest. Different on purpose: v0 commits to the same place as other versions, not
to ZooKeeper.
"""

from typing import TYPE_CHECKING

from sluice.broker.coordinator.group.group import Commit, NewOffset
from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .replicated_response import ReplicationErrors, respond_when_replicated
from .topic_lookup import authorized_topics, partition_error

if TYPE_CHECKING:
    from sluice.broker.handlers.services import GroupServices

API = served("OffsetCommit", "0-10")

_TOPIC_IDS_SINCE = 10


def handle(ctx: RequestContext, request: OffsetCommitRequest, broker: "GroupServices") -> Message | Outcome:
    new: list[NewOffset] = []
    pending: list[OffsetCommitResponsePartition] = []  # results whose error code the coordinator returns
    topics = []
    for requested, topic in ctx.sliced(zip(request.topics, _find(ctx, broker, request), strict=True)):
        results = []
        for one in ctx.sliced(requested.partitions):
            error = partition_error(topic, one.partition_index)
            result = OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=error)
            results.append(result)
            if not isinstance(topic, ErrorCode) and not error:
                metadata = one.committed_metadata or ""
                offset, epoch, at_ms = one.committed_offset, one.committed_leader_epoch, one.commit_timestamp
                new.append(NewOffset(topic, one.partition_index, offset, epoch, metadata, at_ms))
                pending.append(result)
        topics.append(OffsetCommitResponseTopic(name=requested.name, topic_id=requested.topic_id, partitions=results))
    if new:
        commit = Commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            ctx.version,
            new,
        )
        codes = broker.groups.commit_offsets(ctx, commit, request.retention_time_ms)
        for result, code in ctx.sliced(zip(pending, codes, strict=True)):
            result.error_code = code
        ctx.free(new)

    def respond(errors: ReplicationErrors) -> OffsetCommitResponse:
        for result in pending if errors else ():
            result.error_code = result.error_code or errors[request.group_id]
        ctx.error_code = next(
            (one.error_code for topic in ctx.sliced(topics) for one in ctx.sliced(topic.partitions) if one.error_code),
            0,
        )
        return OffsetCommitResponse(topics=topics)

    committed = any(not result.error_code for result in pending)
    return respond_when_replicated(ctx, broker, [request.group_id], respond) if committed else respond({})


def _find(ctx: RequestContext, broker: "GroupServices", request: OffsetCommitRequest) -> list[Topic | ErrorCode]:
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return [ErrorCode.GROUP_AUTHORIZATION_FAILED] * len(request.topics)
    requested = [(topic.name, topic.topic_id) for topic in ctx.sliced(request.topics)]
    return authorized_topics(ctx, broker, requested, by_id=ctx.version >= _TOPIC_IDS_SINCE)
