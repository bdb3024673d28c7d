"""ListOffsets, key 2, versions 0-11: the offset at a time, or at the beginning or end of a partition.

v0 answers a list of segment offsets before a time, v1 one offset and its timestamp (KIP-79), v2 knows read_committed,
v7 the greatest timestamp (KIP-734), v8 the earliest local and v9 the latest tiered offset (KIP-405), v11 the earliest
one pending upload. Follows ReplicaManager.fetchOffset and UnifiedLog.fetchOffsetByTimestamp.
"""

from sluice.broker.cluster import Partition
from sluice.broker.context import RequestContext
from sluice.protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.invalid import InvalidRecords

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
# The first version in which a special timestamp has a meaning; earlier ones get UNSUPPORTED_VERSION for it.
_SPECIAL_SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_UNKNOWN = -1
_READ_COMMITTED = 1
_NOW = 2**63 - 1  # the end of the log is as new as anything can be asked for


def handle(ctx: RequestContext, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """One answer for each partition asked for."""
    committed_only = request.isolation_level == _READ_COMMITTED
    topics = []
    for topic in request.topics:
        answers = [_answer(ctx, topic.name, wanted, committed_only) for wanted in topic.partitions]
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _answer(
    ctx: RequestContext, topic_name: str, wanted: ListOffsetsPartition, committed_only: bool
) -> ListOffsetsPartitionResponse:
    partition = ctx.broker.cluster.partition(topic_name, wanted.partition_index)
    if partition is None:
        return _failed(ctx, wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if code := partition.epoch_error(wanted.current_leader_epoch):
        return _failed(ctx, wanted, code)
    if wanted.timestamp < 0 and _SPECIAL_SINCE.get(wanted.timestamp, ctx.version + 1) > ctx.version:
        return _failed(ctx, wanted, ErrorCode.UNSUPPORTED_VERSION)
    if ctx.version == 0:
        return ListOffsetsPartitionResponse(
            partition_index=wanted.partition_index, old_style_offsets=_offsets_before(partition, wanted)
        )
    try:
        timestamp, offset, leader_epoch = _find(partition, wanted.timestamp, committed_only)
    except InvalidRecords as invalid:
        return _failed(ctx, wanted, invalid.code)
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )


def _find(partition: Partition, timestamp: int, committed_only: bool) -> tuple[int, int, int]:
    """Timestamp, offset and leader epoch; -1 where there is none."""
    log = partition.log
    end = log.last_stable_offset if committed_only else log.high_watermark
    if timestamp == LATEST:
        return _UNKNOWN, end, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):  # nothing is tiered: all of the log is local
        return _UNKNOWN, log.log_start_offset, _epoch_at(partition, log.log_start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    found = log.max_timestamp_offset() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if found is None or found.offset >= end:
        return _UNKNOWN, _UNKNOWN, _UNKNOWN
    return found.timestamp, found.offset, found.leader_epoch


def _epoch_at(partition: Partition, offset: int) -> int:
    log = partition.log
    return log.leader_epoch_at(offset) if log.log_start_offset < log.log_end_offset else _UNKNOWN


def _offsets_before(partition: Partition, wanted: ListOffsetsPartition) -> list[int]:
    """What v0 asks for: where segments begin that were last written by the time, newest first; first of all the end."""
    log = partition.log
    starts = [(max(offset, log.log_start_offset), written_ms) for offset, written_ms in log.segment_starts()]
    if log.size_in_bytes or not starts:
        starts.append((log.high_watermark, _NOW))
    if wanted.timestamp == LATEST:
        found = starts
    elif wanted.timestamp == EARLIEST:
        found = starts[:1]
    else:
        found = [start for start in starts if start[1] <= wanted.timestamp]
    return [offset for offset, _ in reversed(found)][: max(wanted.max_num_offsets, 0)]


def _failed(ctx: RequestContext, wanted: ListOffsetsPartition, code: int) -> ListOffsetsPartitionResponse:
    ctx.error_code = ctx.error_code or code
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=code)
