"""OffsetCommit, key 8, versions 0-10.

Follows KafkaApis.handleOffsetCommitRequest. Different on purpose: v0 commits to the same place as other versions, not
to ZooKeeper.
"""

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.group import Commit, NewOffset
from sluice.broker.handlers.replicated_response import ReplicationErrors, respond_when_replicated
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import offset_commit as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .topic_lookup import Topics, check_partitions, fail_partitions

API = served("OffsetCommit", "0-10")
_TOPIC_IDS_SINCE = 10
_Result = api.OffsetCommitResponsePartition


def handle(ctx: RequestContext, request: api.OffsetCommitRequest, broker: Broker) -> Message | Outcome:
    requested = ((topic.name, topic.topic_id, topic.partitions) for topic in request.topics)
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        ctx.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return _response(fail_partitions(ctx, requested, _Result, ErrorCode.GROUP_AUTHORIZATION_FAILED))
    topics, accepted = check_partitions(ctx, broker, requested, _Result, by_id=ctx.version >= _TOPIC_IDS_SINCE)
    if accepted:
        new = ctx.array(
            NewOffset(
                topic,
                one.partition_index,
                one.committed_offset,
                one.committed_leader_epoch,
                one.committed_metadata or "",
                one.commit_timestamp,
            )
            for topic, one, _ in accepted
        )
        commit = Commit(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
            ctx.version,
            new,
        )
        codes = broker.groups.commit_offsets(ctx, commit, request.retention_time_ms)
        for (_, _, result), code in zip(accepted, codes, strict=True):
            result.error_code = code

    def respond(errors: ReplicationErrors) -> api.OffsetCommitResponse:
        for _, _, result in accepted if errors else ():
            result.error_code = result.error_code or errors[request.group_id]
        ctx.error_code = ctx.error_code or next((one.error_code for _, _, one in accepted if one.error_code), 0)
        return _response(topics)

    committed = any(not result.error_code for _, _, result in accepted)
    return respond_when_replicated(ctx, broker, [request.group_id], respond) if committed else respond({})


def _response(topics: Topics[_Result]) -> api.OffsetCommitResponse:
    return api.OffsetCommitResponse(topics=[api.OffsetCommitResponseTopic(*topic) for topic in topics])
