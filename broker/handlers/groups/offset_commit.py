"""OffsetCommit, key 8, versions 0-10.

Follows KafkaApis.handleOffsetCommitRequest. Different on purpose: v0 commits to the same place as other versions, not
to ZooKeeper.
"""

from operator import attrgetter

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.group import Commit, NewOffset
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
from .topic_lookup import authorized_topics, merge_topics, partition_error

API = served("OffsetCommit", "0-10")

_TOPIC_IDS_SINCE = 10


def handle(ctx: RequestContext, request: OffsetCommitRequest, broker: Broker) -> Message | Outcome:
    new: list[NewOffset] = ctx.array()
    pending: list[OffsetCommitResponsePartition] = ctx.array()  # results whose error code the coordinator returns
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return _error_response(ctx, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    found = authorized_topics(
        ctx,
        broker,
        ((topic.name, topic.topic_id) for topic in request.topics),
        by_id=ctx.version >= _TOPIC_IDS_SINCE,
    )
    failed_topics: list[OffsetCommitResponseTopic] = ctx.array()
    accepted_topics: list[OffsetCommitResponseTopic] = ctx.array()
    for requested, topic in zip(request.topics, found, strict=True):
        failed: list[OffsetCommitResponsePartition] = []
        accepted: list[OffsetCommitResponsePartition] = []
        for one in requested.partitions:
            error = partition_error(topic, one.partition_index)
            result = OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=error)
            (failed if error else accepted).append(result)
            ctx.error_code = ctx.error_code or error
            if not isinstance(topic, ErrorCode) and not error:
                metadata = one.committed_metadata or ""
                offset, epoch, at_ms = one.committed_offset, one.committed_leader_epoch, one.commit_timestamp
                new.append(NewOffset(topic, one.partition_index, offset, epoch, metadata, at_ms))
                pending.append(result)
        name, topic_id = requested.name, requested.topic_id
        if failed or isinstance(topic, ErrorCode):
            failed_topics.append(OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=failed))
        if accepted:
            accepted_topics.append(OffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=accepted))
    topics = merge_topics(ctx, failed_topics, accepted_topics, attrgetter("name", "topic_id"))
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
        for result, code in zip(pending, codes, strict=True):
            result.error_code = code
        ctx.free(new)

    def respond(errors: ReplicationErrors) -> OffsetCommitResponse:
        for result in pending if errors else ():
            result.error_code = result.error_code or errors[request.group_id]
        ctx.error_code = ctx.error_code or next((one.error_code for one in pending if one.error_code), 0)
        return OffsetCommitResponse(topics=topics)

    committed = any(not result.error_code for result in pending)
    return respond_when_replicated(ctx, broker, [request.group_id], respond) if committed else respond({})


def _error_response(ctx: RequestContext, request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    ctx.error_code = code
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
