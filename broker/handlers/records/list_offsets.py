"""ListOffsets, key 2, versions 0-11.

Consumers read up to the high watermark or the last stable offset, replicas and debug consumers up to the log end.
Follows ReplicaManager.fetchOffset and UnifiedLog.fetchOffsetByTimestamp; v0 follows Kafka 3.8's
legacyFetchOffsetsBefore.
"""

from sluice.broker.broker import Broker
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.topic import Partition
from sluice.broker.replica.partition_reader import ISOLATION_LEVELS, READ_COMMITTED
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import list_offsets as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.invalid import InvalidRecords

API = served("ListOffsets", "0-11")

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
# The first version that supports a special timestamp; earlier ones return UNSUPPORTED_VERSION.
_SPECIAL_SINCE = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_OFFSET_NOT_AVAILABLE_SINCE = 5  # KIP-207; before, LEADER_NOT_AVAILABLE
_UNKNOWN = -1
_CONSUMER, _DEBUGGING = -1, -2


def handle(ctx: RequestContext, request: api.ListOffsetsRequest, broker: Broker) -> Message:
    hidden = broker.auth.filter_denied(
        ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, [topic.name for topic in request.topics]
    )
    if ctx.version == 0:
        return api.ListOffsetsResponse(
            topics=[
                api.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        _failed(ctx, requested, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                        if topic.name in hidden
                        else _list(ctx, broker, request, topic.name, requested)
                        for requested in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
    if request.isolation_level not in ISOLATION_LEVELS and any(topic.name not in hidden for topic in request.topics):
        return failed(ctx, request, ErrorCode.UNKNOWN_SERVER_ERROR)
    times = ctx.counts(
        (topic.name, requested.partition_index) for topic in request.topics for requested in topic.partitions
    )
    # As in Kafka, repeated topics are merged, and topics without partitions left out, unless they are denied.
    responses: dict[str, dict[int, api.ListOffsetsPartitionResponse]] = ctx.mapping()
    denied: list[api.ListOffsetsTopicResponse] = []
    for topic in request.topics:
        if topic.name in hidden:
            rejected = [_failed(ctx, requested, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for requested in topic.partitions]
            denied.append(api.ListOffsetsTopicResponse(name=topic.name, partitions=rejected))
            continue
        if not topic.partitions:
            continue
        partitions = responses.get(topic.name)
        if partitions is None:
            partitions = responses[topic.name] = ctx.mapping()
        for requested in topic.partitions:
            index = requested.partition_index
            if times[topic.name, index] > 1:
                partitions[index] = _failed(ctx, requested, ErrorCode.INVALID_REQUEST)
            else:
                partitions[index] = _partition_response(ctx, broker, request, topic.name, requested)
    return api.ListOffsetsResponse(
        topics=[
            api.ListOffsetsTopicResponse(name=name, partitions=list(partitions.values()))
            for name, partitions in responses.items()
        ]
        + denied
    )


def _partition_response(
    ctx: RequestContext,
    broker: Broker,
    request: api.ListOffsetsRequest,
    topic_name: str,
    requested: api.ListOffsetsPartition,
) -> api.ListOffsetsPartitionResponse:
    if requested.timestamp < 0 and _SPECIAL_SINCE.get(requested.timestamp, ctx.version + 1) > ctx.version:
        return _failed(ctx, requested, ErrorCode.UNSUPPORTED_VERSION)
    partition = broker.metadata.partition(topic_name, requested.partition_index)
    if partition is None:
        return _failed(ctx, requested, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if code := _access_error(partition, broker.node_id, request.replica_id, requested.current_leader_epoch):
        return _failed(ctx, requested, code)
    end = _end(request, partition.log)
    if request.replica_id == _CONSUMER and _is_unknown_yet(partition, requested.timestamp, end):
        unavailable = ctx.version >= _OFFSET_NOT_AVAILABLE_SINCE
        return _failed(
            ctx, requested, ErrorCode.OFFSET_NOT_AVAILABLE if unavailable else ErrorCode.LEADER_NOT_AVAILABLE
        )
    try:
        timestamp, offset, leader_epoch = _find(partition, requested.timestamp, end)
    except InvalidRecords as invalid:
        return _failed(ctx, requested, invalid.code)
    return api.ListOffsetsPartitionResponse(
        partition_index=requested.partition_index, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )


def _access_error(partition: Partition, node_id: int, replica_id: int, current_leader_epoch: int) -> int:
    if replica_id == _DEBUGGING and node_id in partition.replicas:  # also of a follower
        return partition.epoch_error(current_leader_epoch)
    return partition.access_error(node_id, current_leader_epoch)


def _is_unknown_yet(partition: Partition, timestamp: int, end: int) -> bool:
    # fetchOffsetForTimestamp: a new leader's high watermark may be outdated.
    log = partition.log
    if partition.epoch_start_offset <= log.high_watermark:
        return False
    if timestamp < 0 and timestamp != MAX_TIMESTAMP:
        return timestamp == LATEST
    found = log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    return found is None or found.offset >= end


def _end(request: api.ListOffsetsRequest, log: PartitionLog) -> int:
    if request.replica_id != _CONSUMER:
        return log.log_end_offset
    return log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark


def _find(partition: Partition, timestamp: int, end: int) -> tuple[int, int, int]:
    log = partition.log
    if timestamp == LATEST:
        return _UNKNOWN, end, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):  # there is no tiered storage
        return _UNKNOWN, log.log_start_offset, log.leader_epoch_at(log.log_start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    found = log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= end:
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    return found.timestamp, found.offset, found.leader_epoch


def _list(
    ctx: RequestContext,
    broker: Broker,
    request: api.ListOffsetsRequest,
    topic_name: str,
    requested: api.ListOffsetsPartition,
) -> api.ListOffsetsPartitionResponse:
    partition = broker.metadata.partition(topic_name, requested.partition_index)
    if partition is None:
        return _failed(ctx, requested, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not broker.replicas.leads(partition):
        return _failed(ctx, requested, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    offsets = _offsets_before(partition.log, requested, ctx.now_ms)
    high_watermark = partition.log.high_watermark
    if request.replica_id == _CONSUMER and any(offset > high_watermark for offset in offsets):
        offsets = [high_watermark] + [offset for offset in offsets if offset <= high_watermark]
    return api.ListOffsetsPartitionResponse(partition_index=requested.partition_index, old_style_offsets=offsets)


def _offsets_before(log: PartitionLog, requested: api.ListOffsetsPartition, now_ms: int) -> list[int]:
    starts = [(max(offset, log.log_start_offset), written_ms) for offset, written_ms in log.segment_starts()]
    if log.size_in_bytes or not starts:
        starts.append((log.log_end_offset, now_ms))
    if requested.timestamp == LATEST:
        found = starts
    elif requested.timestamp in (EARLIEST, EARLIEST_LOCAL):
        found = starts[:1]
    else:
        newest = max((place for place, start in enumerate(starts) if start[1] <= requested.timestamp), default=-1)
        found = starts[: newest + 1]
    return [offset for offset, _ in reversed(found)][: max(requested.max_num_offsets, 0)]


def _failed(ctx: RequestContext, requested: api.ListOffsetsPartition, code: int) -> api.ListOffsetsPartitionResponse:
    ctx.error_code = ctx.error_code or code
    return api.ListOffsetsPartitionResponse(partition_index=requested.partition_index, error_code=code)
