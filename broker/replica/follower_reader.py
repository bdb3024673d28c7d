"""Reads of consumers from followers (KIP-392).

Follows Kafka's Partition.fetchRecords on a follower: any replica serves a consumer since Fetch v11, up to its own high
watermark. Different on purpose: a follower learns of the high watermark at once, unless it lags.
"""

from functools import cache

from sluice.broker.metadata.topic import Partition
from sluice.protocol.apis.fetch import EpochEndOffset, FetchPartition, PartitionData
from sluice.protocol.errors import ErrorCode

from .fetch_session import RequestedPartition
from .partition_reader import (
    PartitionReader,
    aborted_transactions,
    divergence,
    diverging_data,
    error_data,
    partition_data,
    readers_of,
)


class FollowerReader(PartitionReader):
    __slots__ = ()

    def _end(self, partition: Partition) -> int:
        lag = partition.lagging_followers.get(self._node_id)
        end = self.up_to(partition.log)
        return end if lag is None else min(end, lag.offset)

    def _read_error(self, partition: Partition, requested: FetchPartition) -> ErrorCode | EpochEndOffset | None:
        if partition.deleted:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error = partition.epoch_error(max(requested.current_leader_epoch, -1))
        if error:
            return ErrorCode(error)
        lag = partition.lagging_followers.get(self._node_id)
        if lag is not None and requested.fetch_offset > lag.offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return divergence(requested, partition.log) if requested.last_fetched_epoch >= 0 else None

    def is_unchanged(self, item: RequestedPartition) -> bool:
        return False

    def is_at_end(self, item: RequestedPartition) -> bool:
        partition, requested = item.partition, item.request
        if partition is None:
            return False
        at_end = partition.log.log_start_offset <= requested.fetch_offset == self._end(partition)
        return at_end and self._read_error(partition, requested) is None

    def bytes_waiting(self, item: RequestedPartition) -> int | None:
        partition, requested = item.partition, item.request
        if partition is None or self._read_error(partition, requested) is not None:
            return None
        log, offset, end = partition.log, requested.fetch_offset, self._end(partition)
        if log.log_start_offset <= offset < end:
            return log.bytes_between(offset, end, requested.partition_max_bytes)
        return 0 if end <= offset <= log.log_end_offset else None

    def size(self, item: RequestedPartition, max_bytes: int, min_one_batch: bool) -> int:
        partition, requested = item.partition, item.request
        if partition is None or self._read_error(partition, requested) is not None:
            return 0
        end = self._end(partition)
        return partition.log.size_available(requested.fetch_offset, max_bytes, end, min_one_batch)

    def read(self, item: RequestedPartition, max_bytes: int, min_one_batch: bool) -> tuple[PartitionData, int]:
        partition = item.partition
        if partition is None:
            return error_data(item, item.error_code), 0
        log, requested = partition.log, item.request
        error = self._read_error(partition, requested)
        if error is not None:
            return error_data(item, error) if isinstance(error, ErrorCode) else diverging_data(item, log, error), 0
        end = self._end(partition)
        found = log.read(requested.fetch_offset, max_bytes, end, min_one_batch)
        if found.error_code:
            return error_data(item, found.error_code), 0
        aborted = None
        if self._committed_only:
            aborted = aborted_transactions(log, requested.fetch_offset, found.next_offset)
        data = partition_data(log, requested.partition, aborted, found.parts)
        lag = partition.lagging_followers.get(self._node_id)
        if lag is not None:
            data.high_watermark = min(data.high_watermark, lag.offset)
            data.last_stable_offset = min(data.last_stable_offset, lag.offset)
        return data, found.size


class AnyReplicaReader(PartitionReader):
    __slots__ = ("_follower", "_leader")

    def __init__(self, node_id: int, *, committed_only: bool) -> None:
        super().__init__(node_id, committed_only=committed_only, for_follower=False)
        readers = readers_of(node_id)
        self._leader = readers.committed if committed_only else readers.uncommitted
        self._follower = FollowerReader(node_id, committed_only=committed_only, for_follower=False)

    def _of(self, item: RequestedPartition) -> PartitionReader:
        partition = item.partition
        if partition is None or partition.leader == self._node_id or self._node_id not in partition.replicas:
            return self._leader
        return self._follower

    def is_unchanged(self, item: RequestedPartition) -> bool:
        return self._of(item).is_unchanged(item)

    def is_at_end(self, item: RequestedPartition) -> bool:
        return self._of(item).is_at_end(item)

    def bytes_waiting(self, item: RequestedPartition) -> int | None:
        return self._of(item).bytes_waiting(item)

    def size(self, item: RequestedPartition, max_bytes: int, min_one_batch: bool) -> int:
        return self._of(item).size(item, max_bytes, min_one_batch)

    def read(self, item: RequestedPartition, max_bytes: int, min_one_batch: bool) -> tuple[PartitionData, int]:
        return self._of(item).read(item, max_bytes, min_one_batch)


@cache
def any_replica_reader(node_id: int, *, committed_only: bool) -> AnyReplicaReader:
    return AnyReplicaReader(node_id, committed_only=committed_only)
