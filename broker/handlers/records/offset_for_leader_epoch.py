"""OffsetForLeaderEpoch, key 23, versions 0-4 (KIP-320)."""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from sluice.protocol.errors import ErrorCode

API = served("OffsetForLeaderEpoch", "0-4")


def handle(ctx: RequestContext, request: OffsetForLeaderEpochRequest, broker: Broker) -> OffsetForLeaderEpochResponse:
    sees_all = broker.auth.authorize_cluster(ctx, AclOperation.CLUSTER_ACTION, log_denied=False)
    names = [topic.topic for topic in request.topics]
    hidden = () if sees_all else broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _error_result(ctx, requested, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                    if topic.topic in hidden
                    else _end_offset(ctx, broker, topic.topic, requested)
                    for requested in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _end_offset(
    ctx: RequestContext, broker: Broker, topic_name: str, requested: OffsetForLeaderPartition
) -> EpochEndOffset:
    partition = broker.metadata.partition(topic_name, requested.partition)
    if partition is None:
        code: int = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        code = partition.access_error(broker.node_id, requested.current_leader_epoch)
    if partition is None or code:
        return _error_result(ctx, requested, code)
    leader_epoch, end_offset = partition.log.end_offset_for_epoch(requested.leader_epoch)
    return EpochEndOffset(partition=requested.partition, leader_epoch=leader_epoch, end_offset=end_offset)


def _error_result(ctx: RequestContext, requested: OffsetForLeaderPartition, code: int) -> EpochEndOffset:
    ctx.error_code = ctx.error_code or code
    return EpochEndOffset(partition=requested.partition, error_code=code)
