"""One partition's log: batches are judged, copied once into a segment, and served from there by reference.

Follows Kafka's UnifiedLog and LocalLog. Different on purpose:
- a read returns whole batches; Kafka cuts the last one where max_bytes ends, and clients throw the piece away;
- a read goes on through the following segments; Kafka stops at the end of one;
- a batch larger than segment.bytes gets a segment of its own size; Kafka refuses it (RECORD_LIST_TOO_LARGE);
- a batch goes into a new segment by its timestamp alone (segment.ms): without one it never does, where Kafka goes by
  the segment's age; and the jitter is from the log's name and end, so that two runs give the same segments;
- a truncation keeps what is known of producers that have nothing in what goes; Kafka reads all from a snapshot.
Where the bytes are is behind `LogStorage`: memory, with one bound over all partitions, or a directory.

`append` moves the log end offset only. Whoever knows of the replicas calls `advance_high_watermark`: at once where the
leader is the only one.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from msgspec.structs import replace

from sluice.config.value_types import LONG_MAX
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import NO_PRODUCER_ID
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.log_validator import CLIENT, Appendable
from sluice.protocol.records.record import iter_records
from sluice.protocol.records.validate import stamp_usual, validate

from .leader_epochs import LeaderEpochs
from .log_config import LogConfig
from .log_results import AppendResult, LogRead, TimestampOffset
from .producer_state import AbortedTransaction, LastRecord, Marker, ProducerState, Refusal, StoredBatch, read_marker
from .retention import count_over_age, count_over_size
from .segment_list import SegmentList

if TYPE_CHECKING:
    from .log_storage import LogSegment, LogStorage, RestoredLog

# When the active segment is full by time: a timestamp, or one of these. Every timestamp is above the first.
_NOT_KNOWN = -2
_NEVER = LONG_MAX
# Errors for which Kafka does not tell the producer where the log starts (ReplicaManager.appendToLocalLog).
_LOG_START_UNKNOWN = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE})

# Of the log's name: with what an append fails, None: with nothing.
Fails = Callable[[str], OSError | None]


class PartitionLog:
    """The log of `name` ("topic-0"): offsets, records, producers, leader epochs."""

    __slots__ = (
        "_append_config",
        "_epochs",
        "_fails",
        "_producers",
        "_rolls_after",
        "_segments",
        "_storage",
        "config",
        "first_dirty_offset",
        "has_followers",
        "high_watermark",
        "last_stable_offset",
        "log_end_offset",
        "log_start_offset",
        "name",
        "size_in_bytes",
    )

    def __init__(
        self, name: str, config: LogConfig, storage: "LogStorage", restored: "RestoredLog | None" = None
    ) -> None:
        """`restored` is what the storage has of it already."""
        self.name = name
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.last_stable_offset = 0
        self.size_in_bytes = 0
        self.first_dirty_offset = 0  # what is before it has been compacted
        self.has_followers = True  # else the high watermark moves with every append
        self._storage = storage
        self._producers = ProducerState(name)
        self._epochs = LeaderEpochs()
        self._fails: Fails | None = None
        self.update_config(config)
        self._segments = SegmentList()
        if restored is None:
            self._begin()
        else:
            self._restore(restored)

    def update_config(self, config: LogConfig) -> None:
        """Takes the topic's new configuration; segments that are there keep their sizes."""
        self.config = config
        self._rolls_after = _NOT_KNOWN
        self._append_config = replace(config.append, partition=self.name)
        self._storage.configure(config)

    def fail_appends(self, fails: Fails | None) -> None:
        """From now on appends fail with what this returns of the log's name, if anything; None: no more. Only fault
        rules do that, and the way of an append is no longer where none does.
        """
        self._fails = fails
        self._rolls_after = _NOT_KNOWN

    def begin_epoch(self, leader_epoch: int) -> None:
        """Says who leads from here on, also before anything is appended (Partition.makeLeader)."""
        self._assign_epoch(leader_epoch, self.log_end_offset)

    def _assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        if leader_epoch != self._epochs.latest:
            self._epochs.assign(leader_epoch, start_offset)
            self._storage.save_epochs(self._epochs)

    @property
    def latest_epoch(self) -> int:
        """Of the newest leader there was; -1: there was none."""
        return self._epochs.latest

    @property
    def segments(self) -> "Sequence[LogSegment]":
        """Oldest first; the last is appended to."""
        return self._segments.ordered

    # Appending

    def append(
        self,
        data: memoryview,
        now_ms: int,
        leader_epoch: int,
        origin: int = CLIENT,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Stores one batch, or says why not (then nothing has changed). The high watermark stays.

        `data` is what a producer sent: magic 2, or 0 and 1, which are stored as 2. If it is writable, it may be changed
        in place; it is not kept. What COORDINATOR appends are the ends of transactions, judged by the rules of
        `transaction_version`, and records of its own topic.
        """
        first_offset = self.log_end_offset
        try:
            appendable = validate(data, first_offset, now_ms, leader_epoch, self._append_config, origin)
        except InvalidRecords as invalid:
            return self._invalid(invalid)
        return self._store(appendable, now_ms, leader_epoch, origin, transaction_version)

    def append_plain(self, data: memoryview, now_ms: int, leader_epoch: int) -> AppendResult | None:
        """As `append`, for a client's one magic 2 batch that is of no transaction and stays as it is, at less cost.

        None where it is anything else, or there is something wrong with it. Then nothing has changed.
        """
        try:
            appendable = stamp_usual(data, self.log_end_offset, now_ms, leader_epoch, self._append_config)
        except InvalidRecords:
            return None
        return None if appendable is None else self._store(appendable, now_ms, leader_epoch, CLIENT, 0)

    def _store(
        self, appendable: Appendable, now_ms: int, leader_epoch: int, origin: int, transaction_version: int
    ) -> AppendResult:
        """What `append` does with what is fit to be stored."""
        first_offset = self.log_end_offset
        header = appendable.header
        if header is None:
            return AppendResult(log_start_offset=self.log_start_offset)
        records = appendable.data
        last_offset = first_offset + header.last_offset_delta
        max_timestamp = appendable.max_timestamp
        marker: Marker | None = None
        verdict: StoredBatch | Refusal | None
        has_producer = header.producer_id > NO_PRODUCER_ID
        if has_producer:
            if header.is_control:
                marker = read_marker(records)
                verdict = self._producers.check_marker(header, marker, first_offset, transaction_version)
            elif origin == CLIENT:
                verdict = self._producers.check_batch(header, first_offset)
            else:
                verdict = self._producers.check_coordinator_batch(header, first_offset)
            if verdict is not None:
                return self._answer(verdict)
        try:
            if max_timestamp > self._rolls_after or not self._segments.ordered[-1].append(
                records, last_offset, max_timestamp, now_ms
            ):
                self._append_to_other(records, last_offset, max_timestamp, now_ms)
        except OSError as error:
            return AppendResult(ErrorCode.KAFKA_STORAGE_ERROR, reason=self._storage.failed(error))
        self.size_in_bytes += len(records)
        self.log_end_offset = last_offset + 1
        if leader_epoch != self._epochs.latest:
            self._assign_epoch(leader_epoch, first_offset)
        if has_producer:
            if marker is None:
                self._producers.batch_stored(header, first_offset, last_offset, max_timestamp)
            else:
                self._producers.marker_stored(header, marker, first_offset)
        if not self.has_followers:
            self.high_watermark = self.last_stable_offset = last_offset + 1
            if self._producers.has_undecided():
                self._update_last_stable_offset()
        return AppendResult(0, first_offset, last_offset, appendable.log_append_time_ms, self.log_start_offset)

    def advance_high_watermark(self, offset: int) -> bool:
        """Says that all replicas have what is before `offset`; it never goes back. Returns whether it moved."""
        if offset <= self.high_watermark:
            return False
        assert offset <= self.log_end_offset
        self.high_watermark = offset
        self._update_last_stable_offset()
        return True

    # Reading

    def read(self, offset: int, max_bytes: int, up_to_offset: int, min_one_batch: bool) -> LogRead:
        """Whole batches from the one that holds `offset` on, while they fit into `max_bytes` and end by `up_to_offset`.

        With `min_one_batch` the first is returned even if it is larger. `up_to_offset` is the high watermark, the last
        stable offset or the log end offset. An offset outside the log is OFFSET_OUT_OF_RANGE; its end is not outside.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            return LogRead([], 0, offset, ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset >= up_to_offset:
            return LogRead([], 0, offset)
        try:
            return self._segments.read(offset, max_bytes, up_to_offset, min_one_batch)
        except OSError as error:
            self._storage.failed(error)
            return LogRead([], 0, offset, ErrorCode.KAFKA_STORAGE_ERROR)

    def size_available(self, offset: int, max_bytes: int, up_to_offset: int, min_one_batch: bool) -> int:
        """How many bytes `read` would return, from the index alone; 0 for an offset outside the log."""
        if not self.log_start_offset <= offset < min(up_to_offset, self.log_end_offset):
            return 0
        try:
            return self._segments.size_available(offset, max_bytes, up_to_offset, min_one_batch)
        except OSError:
            return 0  # what is wrong is said by the read

    def bytes_between(self, offset: int, up_to_offset: int, at_most: int) -> int:
        """How many bytes there are from the batch that holds `offset`, which is in the log, to `up_to_offset`.

        Counted to `at_most`, and not in whole batches: what a long poll goes by.
        """
        try:
            return self._segments.bytes_between(offset, up_to_offset, at_most)
        except OSError:
            return at_most  # so that the read says at once what is wrong

    def aborted_transactions(self, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """What a reader of committed records, given those from `offset` to `upper_offset` (exclusive), has to skip."""
        return self._producers.aborted_transactions(offset, upper_offset)

    @property
    def producers(self) -> ProducerState:
        """What is known of those who write here with a producer id."""
        return self._producers

    # Offsets by time and by leader

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record whose timestamp is `timestamp` or later; None: there is none.

        Raises InvalidRecords where records that were stored without having been walked cannot be read, or the disk
        does not give them (KAFKA_STORAGE_ERROR).
        """
        try:
            return self._offset_for_timestamp(timestamp)
        except OSError as error:
            raise self._unreadable(error) from None

    def _offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        start_offset = self.log_start_offset
        for segment in self._segments.ordered:
            if segment.max_timestamp < timestamp:
                continue
            for header, batch in segment.batches_from_timestamp(timestamp, start_offset):
                if header.max_timestamp >= timestamp:
                    for record in iter_records(batch):
                        if record.timestamp >= timestamp and record.offset >= start_offset:
                            return TimestampOffset(record.timestamp, record.offset, header.partition_leader_epoch)
        return None

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The record with the greatest timestamp, the first of several; None: there is none (KIP-734).

        Raises InvalidRecords as `offset_for_timestamp` does.
        """
        try:
            return self._max_timestamp_offset()
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> InvalidRecords:
        return InvalidRecords(ErrorCode.KAFKA_STORAGE_ERROR, self._storage.failed(error))

    def _max_timestamp_offset(self) -> TimestampOffset | None:
        segment = max(self._segments.with_records(), key=lambda segment: segment.max_timestamp, default=None)
        if segment is None:
            return None
        timestamp = segment.max_timestamp
        header, batch = next(segment.batches_from_timestamp(timestamp, segment.base_offset))
        for record in iter_records(batch):
            if record.timestamp == timestamp:
                return TimestampOffset(timestamp, record.offset, header.partition_leader_epoch)
        return None

    def segment_starts(self) -> list[tuple[int, int]]:
        """Base offset and last append (ms) of each segment, oldest first: what ListOffsets v0 goes by."""
        return [(segment.base_offset, segment.last_append_ms) for segment in self._segments.with_records()]

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetForLeaderEpoch; (-1, -1) where nothing is known. See LeaderEpochs."""
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def leader_epoch_at(self, offset: int) -> int:
        """The epoch of the record at `offset`, of the last record for the log end offset; -1: not known."""
        return self._epochs.at(offset)

    # Compaction: what is asked of a CleanableLog (cleaner.py)

    @property
    def largest_segment_bytes(self) -> int:
        return self._storage.largest_segment_bytes(self)

    def segments_before(self, offset: int) -> "Sequence[LogSegment]":
        return self._segments.before(offset)

    def last_records(self) -> "Mapping[int, LastRecord]":
        return self._producers.last_records()

    def begin_cleaned(self, group: "Sequence[LogSegment]") -> "LogSegment | None":
        if not self._segments.has_group(group):
            return None
        size = sum(segment.size for segment in group)
        return self._storage.begin_cleaned(self, group[0].base_offset, size, group[-1].last_append_ms)

    def save_cleaned(self, cleaned: "LogSegment", then: Callable[[], None]) -> None:
        self._storage.save_cleaned(cleaned, then)

    def discard_cleaned(self, cleaned: "LogSegment") -> None:
        self._storage.delete(cleaned)

    def replace_group(
        self, group: "Sequence[LogSegment]", cleaned: "LogSegment", aborted: Sequence[AbortedTransaction]
    ) -> bool:
        if not self._segments.has_group(group):
            self._storage.delete(cleaned)
            return False
        self._producers.replace_aborted(cleaned.base_offset, self._segments.end_of_group(group), aborted)
        self._storage.replace(self, group, cleaned)
        self._segments.replace_group(group, cleaned)
        self.size_in_bytes += cleaned.size - sum(segment.size for segment in group)
        return True

    # Letting go

    def delete_records_before(self, offset: int) -> ErrorCode:
        """Moves the log's start to `offset` (DeleteRecords); memory goes with whole segments."""
        if offset > self.high_watermark:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        try:
            while self._segments.ordered and self._end_of_oldest() <= offset and not self._has_only_an_empty_segment():
                self.drop_oldest_segment()
        except OSError as error:
            self._storage.failed(error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._move_log_start(offset)
        return ErrorCode.NONE

    def enforce_retention(self, now_ms: int) -> int:
        """Lets go of what retention.bytes and retention.ms do not keep; returns the number of segments."""
        dropped = self._enforce_retention_bytes()
        if not self.config.cleanup_deletes:
            return dropped
        return dropped + self._drop(
            count_over_age(self._segments.ordered, now_ms, self.config.retention_ms, self.high_watermark)
        )

    def _enforce_retention_bytes(self) -> int:
        if not self.config.cleanup_deletes:
            return 0
        return self._drop(
            count_over_size(
                self._segments.ordered, self.size_in_bytes, self.config.retention_bytes, self.high_watermark
            )
        )

    def expire_producers(self, now_ms: int) -> None:
        """Forgets producers that have been idle for producer.id.expiration.ms."""
        self._producers.expire(now_ms, self.config.producer_id_expiration_ms)

    def oldest_append_ms(self) -> int | None:
        """When the oldest segment was last appended to; None: there is no segment."""
        segments = self._segments.ordered
        return segments[0].last_append_ms if segments else None

    def drop_oldest_segment(self) -> None:
        """Lets the oldest segment go, even the active one, even above the high watermark, which then moves up.

        Readers keep the parts they hold; their memory is free when they let go of them.
        """
        end = self._end_of_oldest()
        segment = self._segments.ordered[0]
        if len(self._segments.ordered) == 1:
            self._begin()  # first, so that at no time nothing tells where the log ends
        else:
            self._segments.drop_oldest()
        self._storage.delete(segment)
        self.size_in_bytes -= segment.size
        self._move_log_start(end)

    def batch_start(self, offset: int) -> int:
        """Where the batch begins that holds `offset`; that itself where none does."""
        header = next((header for header, _ in self._segments.batches(offset)), None)
        return offset if header is None else min(offset, header.base_offset)

    def truncate_to(self, offset: int) -> bool:
        """Forgets what is at `offset` or later, and the whole batch that holds it: another leader has something else
        there. The log goes on at `offset`. Returns whether it was longer (UnifiedLog.truncateTo).
        """
        self._epochs.truncate_from_end(offset)
        self._storage.save_epochs(self._epochs)
        if offset >= self.log_end_offset:
            return False
        cut_off = {header.producer_id for header, _ in self._segments.batches(offset)}
        self._cut_segments(offset)
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.first_dirty_offset = min(self.first_dirty_offset, offset)
        self._rolls_after = _NOT_KNOWN
        if not self._segments.ordered:
            self._begin()
        cut_off.discard(NO_PRODUCER_ID)
        if cut_off:
            self._producers.truncate_from_end(offset, cut_off, self._segments.batches(self.log_start_offset))
        self.high_watermark = min(self.high_watermark, offset)
        self._update_last_stable_offset()
        self._storage.truncated(self)
        return True

    def _cut_segments(self, offset: int) -> None:
        while (segment := self._segments.pop_from(offset)) is not None:
            self._storage.delete(segment)
            self.size_in_bytes -= segment.size
        if self._segments.ordered:
            last = self._segments.ordered[-1]
            self.size_in_bytes -= last.size
            last.truncate_to(offset)
            self.size_in_bytes += last.size

    def close(self) -> None:
        """Lets everything go: the partition is deleted."""
        self._storage.forget(self, self._segments.ordered)
        self._segments = SegmentList()
        self._rolls_after = _NOT_KNOWN
        self.size_in_bytes = 0
        self._move_log_start(self.log_end_offset)

    def _drop(self, count: int) -> int:
        for dropped in range(count):
            try:
                self.drop_oldest_segment()
            except OSError as error:  # it is tried again with the next check
                self._storage.failed(error)
                return dropped
        return count

    def _move_log_start(self, offset: int) -> None:
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        if self._epochs.truncate_from_start(offset):
            self._storage.save_epochs(self._epochs)
        self._producers.truncate_from_start(offset)
        self._update_last_stable_offset()

    def _update_last_stable_offset(self) -> None:
        self.last_stable_offset = self.high_watermark
        if self._producers.has_undecided():
            unstable = self._producers.first_unstable_offset(self.high_watermark)
            if unstable is not None:
                self.last_stable_offset = min(max(unstable, self.log_start_offset), self.high_watermark)

    # Steps of an append

    def _append_to_other(self, records: memoryview, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        """Appends where the active segment is not known to be the right one: mostly to a new one."""
        if self._fails is None:
            self._append_to_right(records, last_offset, max_timestamp, now_ms)
            return
        if (error := self._fails(self.name)) is not None:
            raise error
        self._append_to_right(records, last_offset, max_timestamp, now_ms)
        self._rolls_after = _NOT_KNOWN  # so that the next one comes here, too

    def _append_to_right(self, records: memoryview, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        if self._rolls_after == _NOT_KNOWN and self._segments.ordered:
            active = self._segments.ordered[-1]
            first = next(active.batches(active.base_offset), None)
            self._rolls_after = self._roll_time(max_timestamp if first is None else first[0].max_timestamp)
            if max_timestamp <= self._rolls_after and active.append(records, last_offset, max_timestamp, now_ms):
                return
        self._roll(len(records), now_ms)
        self._rolls_after = self._roll_time(max_timestamp)
        fits = self._segments.ordered[-1].append(records, last_offset, max_timestamp, now_ms)
        assert fits

    def _roll_time(self, first_timestamp: int) -> int:
        """The greatest timestamp that goes into a segment whose first batch has this one (segment.ms)."""
        if first_timestamp < 0:
            return _NEVER
        config = self.config
        most_ms = min(config.segment_ms, config.max_compaction_lag_ms) if config.append.compacted else config.segment_ms
        return first_timestamp + most_ms - self._jitter_ms(min(config.segment_jitter_ms, config.segment_ms))

    def _jitter_ms(self, most_ms: int) -> int:
        """How much earlier than others this log begins its next segment."""
        return crc32(f"{self.name} {self.log_end_offset}".encode()) % most_ms if most_ms else 0

    def _roll(self, size: int, now_ms: int) -> None:
        """Begins a segment with room for `size` bytes."""
        if self._segments.ordered:
            self._storage.segment_filled(self, self._segments.ordered[-1])
            # By time, records go when the broker's timer says so, as in Kafka: old timestamps live until then.
            self._enforce_retention_bytes()
        segment = self._storage.begin_segment(self, self.log_end_offset, size, now_ms)
        self._segments.append(segment)

    def _restore(self, restored: "RestoredLog") -> None:
        """The log goes on: all of it is replicated, for its replicas have this one log."""
        self._segments = SegmentList(restored.segments)
        self._producers, self._epochs = restored.producers, restored.epochs
        self.size_in_bytes = sum(segment.size for segment in self._segments.ordered)
        self.log_start_offset, self.log_end_offset = restored.log_start_offset, restored.log_end_offset
        self.high_watermark = self.log_end_offset
        self._producers.truncate_from_start(self.log_start_offset)
        self._update_last_stable_offset()

    def _begin(self) -> None:
        """Makes an empty log what it is: without segments, or with one that is empty."""
        self._segments = SegmentList(self._storage.first_segments(self, self.log_end_offset))
        self._rolls_after = _NOT_KNOWN

    def _end_of_oldest(self) -> int:
        """Where the oldest segment ends, with the gap behind it."""
        return self._segments.end_of_oldest(self.log_end_offset)

    def _has_only_an_empty_segment(self) -> bool:
        return self.size_in_bytes == 0 and len(self._segments.ordered) == 1

    def _invalid(self, invalid: InvalidRecords) -> AppendResult:
        return AppendResult(
            error_code=invalid.code,
            log_start_offset=-1 if invalid.code in _LOG_START_UNKNOWN else self.log_start_offset,
            error_message=invalid.message if invalid.record_errors else None,
            record_errors=tuple(invalid.record_errors),
            reason=invalid.message,
        )

    def _answer(self, verdict: StoredBatch | Refusal) -> AppendResult:
        if isinstance(verdict, Refusal):
            return AppendResult(verdict.error_code, log_start_offset=self.log_start_offset, reason=verdict.reason)
        return AppendResult(
            base_offset=verdict.first_offset,
            last_offset=verdict.last_offset,
            log_append_time_ms=verdict.timestamp,
            log_start_offset=self.log_start_offset,
            duplicate=True,
        )
