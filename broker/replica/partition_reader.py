"""Reads of one partition for a fetch: its records, or an error.

Follows Kafka's Partition.fetchRecords and ReplicaManager.readFromLog. Fetches of followers get errors: replicas share a
log and never fetch.
"""

from functools import cache
from typing import NamedTuple

from sluice.broker.log.leader_epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.topic import Partition
from sluice.protocol.apis.fetch import AbortedTransaction, EpochEndOffset, FetchPartition, PartitionData
from sluice.protocol.errors import ErrorCode

from .fetch_session import RequestedPartition


class PartitionReader:
    __slots__ = ("_committed_only", "_for_follower", "_node_id")

    def __init__(self, node_id: int, *, committed_only: bool, for_follower: bool) -> None:
        self._node_id = node_id
        self._committed_only = committed_only
        self._for_follower = for_follower

    def up_to(self, log: PartitionLog) -> int:
        return log.last_stable_offset if self._committed_only else log.high_watermark

    def is_unchanged(self, item: RequestedPartition) -> bool:
        partition, requested = item.partition, item.request
        if partition is None or partition.deleted:
            return False
        log = partition.log
        return (
            partition.leader == self._node_id
            and requested.fetch_offset == (log.last_stable_offset if self._committed_only else log.high_watermark)
            and item.high_watermark == log.high_watermark
            and item.log_start_offset == log.log_start_offset
            and requested.current_leader_epoch in (-1, partition.leader_epoch)
            and requested.last_fetched_epoch < 0
        )

    def is_at_end(self, item: RequestedPartition) -> bool:
        partition, requested = item.partition, item.request
        if partition is None:
            return False
        log, offset = partition.log, requested.fetch_offset
        end = log.last_stable_offset if self._committed_only else log.high_watermark
        return log.log_start_offset <= offset == end and self._read_error(partition, requested) is None

    def bytes_waiting(self, item: RequestedPartition) -> int | None:
        """Return the bytes that count for a long poll; None to complete it now (DelayedFetch)."""
        partition, requested = item.partition, item.request
        if partition is None or self._read_error(partition, requested) is not None:
            return None
        log, offset = partition.log, requested.fetch_offset
        end = self.up_to(log)
        if offset == end:
            return 0
        if not log.log_start_offset <= offset < end:
            return None
        return log.bytes_between(offset, end, requested.partition_max_bytes)

    def size(self, item: RequestedPartition, max_bytes: int, min_one_batch: bool) -> int:
        partition, requested = item.partition, item.request
        if partition is None or self._read_error(partition, requested) is not None:
            return 0
        log = partition.log
        return log.size_available(requested.fetch_offset, max_bytes, self.up_to(log), min_one_batch)

    def read(self, item: RequestedPartition, max_bytes: int, min_one_batch: bool) -> tuple[PartitionData, int]:
        partition, requested = item.partition, item.request
        if partition is None:
            return error_data(item, item.error_code), 0
        log = partition.log
        error = self._read_error(partition, requested)
        if error is not None:
            data = error_data(item, error) if isinstance(error, ErrorCode) else diverging_data(item, log, error)
            return data, 0
        end = log.last_stable_offset if self._committed_only else log.high_watermark
        found = log.read(requested.fetch_offset, max_bytes, end, min_one_batch)
        if found.error_code:
            return error_data(item, found.error_code), 0
        aborted = None
        if self._committed_only:
            aborted = aborted_transactions(log, requested.fetch_offset, found.next_offset)
        return partition_data(log, requested.partition, aborted, found.parts), found.size

    def _read_error(self, partition: Partition, requested: FetchPartition) -> ErrorCode | EpochEndOffset | None:
        if partition.deleted:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        epoch = requested.current_leader_epoch
        if partition.leader != self._node_id or (epoch >= 0 and epoch != partition.leader_epoch):
            return ErrorCode(partition.access_error(self._node_id, max(epoch, -1)))
        if self._for_follower:  # Partition.followerReplicaOrThrow
            return ErrorCode.UNKNOWN_LEADER_EPOCH if epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER
        if requested.last_fetched_epoch >= 0:
            return divergence(requested, partition.log)
        return None


def aborted_transactions(log: PartitionLog, offset: int, upper_offset: int) -> list[AbortedTransaction]:
    return [
        AbortedTransaction(one.producer_id, one.first_offset) for one in log.aborted_transactions(offset, upper_offset)
    ]


def partition_data(
    log: PartitionLog, index: int, aborted: list[AbortedTransaction] | None, records: list[memoryview]
) -> PartitionData:
    # In order: index, error code, high watermark, last stable offset, log start offset, diverging epoch, current
    # leader, snapshot id, aborted transactions, preferred read replica, records.
    return PartitionData(
        index,
        0,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        None,
        None,
        None,
        aborted,
        -1,
        records,
    )
    # fmt: on


def divergence(requested: FetchPartition, log: PartitionLog) -> ErrorCode | EpochEndOffset | None:
    """Return where the client's log diverges from this one (KIP-595)."""
    offset, fetched_epoch = requested.fetch_offset, requested.last_fetched_epoch
    epoch, end_offset = log.end_offset_for_epoch(fetched_epoch)
    if epoch == UNDEFINED_EPOCH or end_offset == UNDEFINED_OFFSET or offset < log.log_start_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if epoch < fetched_epoch or end_offset < offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def diverging_data(item: RequestedPartition, log: PartitionLog, where: EpochEndOffset) -> PartitionData:
    return PartitionData(
        partition_index=item.request.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=where,
        aborted_transactions=None,
        records=b"",
    )


def error_data(item: RequestedPartition, code: int) -> PartitionData:
    data = PartitionData(partition_index=item.request.partition, error_code=code, high_watermark=-1, records=b"")
    if item.is_known:
        data.aborted_transactions = None
    return data


class Readers(NamedTuple):
    uncommitted: PartitionReader
    committed: PartitionReader
    follower: PartitionReader


@cache
def readers_of(node_id: int) -> Readers:
    return Readers(
        PartitionReader(node_id, committed_only=False, for_follower=False),
        PartitionReader(node_id, committed_only=True, for_follower=False),
        PartitionReader(node_id, committed_only=False, for_follower=True),
    )
