"""Reads of one partition for a fetch: its records, or an error.

Follows Kafka's Partition.fetchRecords and ReplicaManager.readFromLog. Fetches of followers get errors: replicas share a
log and never fetch.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from sluice.broker.log.leader_epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.topic import FollowerLag, Partition
from sluice.protocol.apis.fetch import AbortedTransaction, EpochEndOffset, FetchPartition, PartitionData
from sluice.protocol.errors import ErrorCode

from .fetch_session import RequestedPartition

ISOLATION_LEVELS = READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class PartitionReader:
    __slots__ = ("_committed_only", "_for_follower", "_node_id")

    def __init__(self, node_id: int, *, committed_only: bool, for_follower: bool) -> None:
        self._node_id = node_id
        self._committed_only = committed_only
        self._for_follower = for_follower

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

    def bytes_waiting(self, item: RequestedPartition) -> int | None:
        """Return the bytes that count for a long poll; None to complete it now (DelayedFetch)."""
        partition, requested = item.partition, item.request
        if partition is None or self._read_error(partition, requested) is not None:
            return None
        log, offset, end = partition.log, requested.fetch_offset, self._end(partition)
        if offset == end:
            return 0
        if not log.log_start_offset <= offset < end:
            return None
        return log.bytes_between(offset, end, requested.partition_max_bytes)

    def size(self, item: RequestedPartition, max_bytes: int, min_one_batch: bool) -> int:
        partition, requested = item.partition, item.request
        if partition is None or self._read_error(partition, requested) is not None:
            return 0
        return partition.log.size_available(requested.fetch_offset, max_bytes, self._end(partition), min_one_batch)

    def read(
        self, item: RequestedPartition, max_bytes: int, min_one_batch: bool, end: int | None = None
    ) -> tuple[PartitionData, int]:
        """Return the response for a partition, and the size of its records, which are before `end`."""
        partition, requested = item.partition, item.request
        if partition is None:
            return error_data(item, item.error_code), 0
        log = partition.log
        error = self._read_error(partition, requested)
        if error is not None:
            data = error_data(item, error) if isinstance(error, ErrorCode) else data_without_records(item, log, error)
            return data, 0
        if end is None:
            end = log.last_stable_offset if self._committed_only else log.high_watermark
        found = log.read(requested.fetch_offset, max_bytes, end, min_one_batch)
        if found.error_code:
            return error_data(item, found.error_code), 0
        aborted = None
        if self._committed_only:
            ended = log.aborted_transactions(requested.fetch_offset, found.next_offset) if found.size else ()
            aborted = [AbortedTransaction(one.producer_id, one.first_offset) for one in ended]
        high_watermark, last_stable_offset = log.high_watermark, log.last_stable_offset
        # In order: index, error code, high watermark, last stable offset, log start offset, diverging epoch, current
        # leader, snapshot id, aborted transactions, preferred read replica, records.
        data = PartitionData(
            requested.partition,
            0,
            high_watermark,
            last_stable_offset,
            log.log_start_offset,
            None,
            None,
            None,
            aborted,
            -1,
            found.parts,
        )
        return data, found.size

    def _end(self, partition: Partition) -> int:
        """Return the offset before which records are readable."""
        log = partition.log
        return log.last_stable_offset if self._committed_only else log.high_watermark

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


class AnyReplicaReader(PartitionReader):
    """Reads also partitions that this broker follows, up to its own high watermark (KIP-392).

    Follows Kafka's Partition.fetchRecords on a follower: any replica serves a consumer since Fetch v11. Different on
    purpose: a follower learns of the high watermark at once, unless it lags.
    """

    __slots__ = ()

    def is_unchanged(self, item: RequestedPartition) -> bool:
        partition = item.partition
        return (partition is None or not self._follows(partition)) and super().is_unchanged(item)

    def bytes_waiting(self, item: RequestedPartition) -> int | None:
        partition, offset = item.partition, item.request.fetch_offset
        if partition is not None and self._follows(partition):
            is_ahead = self._end(partition) <= offset <= partition.log.log_end_offset
            if is_ahead and self._read_error(partition, item.request) is None:
                return 0
        return super().bytes_waiting(item)

    def read(
        self, item: RequestedPartition, max_bytes: int, min_one_batch: bool, end: int | None = None
    ) -> tuple[PartitionData, int]:
        partition = item.partition
        data, size = super().read(item, max_bytes, min_one_batch, None if partition is None else self._end(partition))
        if partition is not None and not data.error_code and (lag := self._lag(partition)) is not None:
            data.high_watermark = min(data.high_watermark, lag.offset)
            data.last_stable_offset = min(data.last_stable_offset, lag.offset)
        return data, size

    def _follows(self, partition: Partition) -> bool:
        return partition.leader != self._node_id and self._node_id in partition.replicas

    def _lag(self, partition: Partition) -> FollowerLag | None:
        return partition.lagging_followers.get(self._node_id) if self._follows(partition) else None

    def _end(self, partition: Partition) -> int:
        lag, end = self._lag(partition), super()._end(partition)
        return end if lag is None else min(end, lag.offset)

    def _read_error(self, partition: Partition, requested: FetchPartition) -> ErrorCode | EpochEndOffset | None:
        if not self._follows(partition):
            return super()._read_error(partition, requested)
        if partition.deleted:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error = partition.epoch_error(max(requested.current_leader_epoch, -1))
        if error:
            return ErrorCode(error)
        lag = self._lag(partition)
        if lag is not None and requested.fetch_offset > lag.offset:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return divergence(requested, partition.log) if requested.last_fetched_epoch >= 0 else None


def divergence(requested: FetchPartition, log: PartitionLog) -> ErrorCode | EpochEndOffset | None:
    """Return where the client's log diverges from this one (KIP-595)."""
    offset, fetched_epoch = requested.fetch_offset, requested.last_fetched_epoch
    epoch, end_offset = log.end_offset_for_epoch(fetched_epoch)
    if epoch == UNDEFINED_EPOCH or end_offset == UNDEFINED_OFFSET or offset < log.log_start_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if epoch < fetched_epoch or end_offset < offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None


def data_without_records(
    item: RequestedPartition, log: PartitionLog, diverging_epoch: EpochEndOffset | None = None, preferred: int = -1
) -> PartitionData:
    return PartitionData(
        partition_index=item.request.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=diverging_epoch,
        aborted_transactions=None,
        preferred_read_replica=preferred,
        records=b"",
    )


def error_data(item: RequestedPartition, code: int) -> PartitionData:
    data = PartitionData(partition_index=item.request.partition, error_code=code, high_watermark=-1, records=b"")
    if item.is_known:
        data.aborted_transactions = None
    return data


class ReplacingReader(PartitionReader, ABC):
    """Reads partitions. Some get another response instead, without a wait."""

    __slots__ = ("_reader",)

    def __init__(self, reader: PartitionReader) -> None:
        self._reader = reader

    @abstractmethod
    def _replacement(self, item: RequestedPartition) -> PartitionData | None: ...

    def is_unchanged(self, item: RequestedPartition) -> bool:
        return self._replacement(item) is None and self._reader.is_unchanged(item)

    def bytes_waiting(self, item: RequestedPartition) -> int | None:
        return self._reader.bytes_waiting(item) if self._replacement(item) is None else None

    def size(self, item: RequestedPartition, max_bytes: int, min_one_batch: bool) -> int:
        return self._reader.size(item, max_bytes, min_one_batch) if self._replacement(item) is None else 0

    def read(
        self, item: RequestedPartition, max_bytes: int, min_one_batch: bool, end: int | None = None
    ) -> tuple[PartitionData, int]:
        data = self._replacement(item)
        return self._reader.read(item, max_bytes, min_one_batch, end) if data is None else (data, 0)


class FailingReader(ReplacingReader):
    """A reader with injected partition errors, which have the same effects as real ones."""

    __slots__ = ("_error_of",)

    def __init__(self, reader: PartitionReader, error_of: Callable[[str, int], ErrorCode | None]) -> None:
        """`error_of` receives topic name and index."""
        super().__init__(reader)
        self._error_of = error_of

    def _replacement(self, item: RequestedPartition) -> PartitionData | None:
        code = self._error_of(item.topic_name, item.request.partition)
        return None if code is None else error_data(item, code)


class Readers:
    """The readers of one broker: for its consumers, by isolation level, and for followers."""

    def __init__(self, node_id: int) -> None:
        self.uncommitted = PartitionReader(node_id, committed_only=False, for_follower=False)
        self.committed = PartitionReader(node_id, committed_only=True, for_follower=False)
        self.uncommitted_of_any_replica = AnyReplicaReader(node_id, committed_only=False, for_follower=False)
        self.committed_of_any_replica = AnyReplicaReader(node_id, committed_only=True, for_follower=False)
        self.follower = PartitionReader(node_id, committed_only=False, for_follower=True)
