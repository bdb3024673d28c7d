"""OffsetForLeaderEpoch, key 23, versions 0-4 (KIP-320)."""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import offset_for_leader_epoch as api
from sluice.protocol.errors import ErrorCode

API = served("OffsetForLeaderEpoch", "0-4")


def handle(
    ctx: RequestContext, request: api.OffsetForLeaderEpochRequest, broker: Broker
) -> api.OffsetForLeaderEpochResponse:
    sees_all = broker.auth.authorize_cluster(ctx, AclOperation.CLUSTER_ACTION, log_denied=False)
    names = (topic.topic for topic in request.topics)
    hidden = () if sees_all else broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    return api.OffsetForLeaderEpochResponse(
        topics=[
            api.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _error_result(ctx, requested, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    if is_hidden
                    else _end_offset(ctx, broker, topic.topic, requested)
                    for requested in topic.partitions
                ],
            )
            for is_hidden in (False, True)
            for topic in request.topics
            if (topic.topic in hidden) is is_hidden
        ]
    )


def _end_offset(
    ctx: RequestContext, broker: Broker, topic_name: str, requested: api.OffsetForLeaderPartition
) -> api.EpochEndOffset:
    partition = broker.metadata.partition(topic_name, requested.partition)
    if partition is None:
        code: int = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        code = partition.access_error(broker.node_id, requested.current_leader_epoch)
    if partition is None or code:
        return _error_result(ctx, requested, code)
    leader_epoch, end_offset = partition.log.end_offset_for_epoch(requested.leader_epoch)
    return api.EpochEndOffset(partition=requested.partition, leader_epoch=leader_epoch, end_offset=end_offset)


def _error_result(ctx: RequestContext, requested: api.OffsetForLeaderPartition, code: int) -> api.EpochEndOffset:
    ctx.error_code = ctx.error_code or code
    return api.EpochEndOffset(partition=requested.partition, error_code=code)
