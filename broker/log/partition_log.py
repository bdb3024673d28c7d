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

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import NO_PRODUCER_ID
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.log_validator import CLIENT, Appendable
from sluice.protocol.records.validate import stamp_usual, validate

from .leader_epochs import LeaderEpochs
from .log_config import LogConfig
from .log_results import AppendResult, LogRead, TimestampOffset, invalid_result, verdict_result
from .producer_state import AbortedTransaction, Marker, ProducerState, Refusal, StoredBatch, read_marker
from .retention import enforce_retention_bytes
from .segment_list import SegmentList

if TYPE_CHECKING:
    from .log_storage import LogSegment, LogStorage, RestoredLog

# When the active segment is full by time: a timestamp, or this. Every timestamp is above it.
_NOT_KNOWN = -2

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
        "config",
        "first_dirty_offset",
        "has_followers",
        "high_watermark",
        "last_stable_offset",
        "log_end_offset",
        "log_start_offset",
        "name",
        "segment_list",
        "size_in_bytes",
        "storage",
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
        self.storage = storage
        self._producers = ProducerState(name)
        self._epochs = LeaderEpochs()
        self._fails: Fails | None = None
        self.update_config(config)
        self.segment_list = SegmentList()
        if restored is None:
            self._begin()
        else:
            self._restore(restored)

    def update_config(self, config: LogConfig) -> None:
        """Takes the topic's new configuration; segments that are there keep their sizes."""
        self.config = config
        self._rolls_after = _NOT_KNOWN
        self._append_config = replace(config.append, partition=self.name)
        self.storage.configure(config)

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
            self.storage.save_epochs(self._epochs)

    @property
    def latest_epoch(self) -> int:
        """Of the newest leader there was; -1: there was none."""
        return self._epochs.latest

    @property
    def segments(self) -> "Sequence[LogSegment]":
        """Oldest first; the last is appended to."""
        return self.segment_list.ordered

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
            return invalid_result(invalid, self.log_start_offset)
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
                return verdict_result(verdict, self.log_start_offset)
        try:
            if max_timestamp > self._rolls_after or not self.segment_list.ordered[-1].append(
                records, last_offset, max_timestamp, now_ms
            ):
                self._append_to_other(records, last_offset, max_timestamp, now_ms)
        except OSError as error:
            return AppendResult(ErrorCode.KAFKA_STORAGE_ERROR, reason=self.storage.failed(error))
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
            return self.segment_list.read(offset, max_bytes, up_to_offset, min_one_batch)
        except OSError as error:
            self.storage.failed(error)
            return LogRead([], 0, offset, ErrorCode.KAFKA_STORAGE_ERROR)

    def size_available(self, offset: int, max_bytes: int, up_to_offset: int, min_one_batch: bool) -> int:
        """How many bytes `read` would return, from the index alone; 0 for an offset outside the log."""
        if not self.log_start_offset <= offset < min(up_to_offset, self.log_end_offset):
            return 0
        try:
            return self.segment_list.size_available(offset, max_bytes, up_to_offset, min_one_batch)
        except OSError:
            return 0  # what is wrong is said by the read

    def bytes_between(self, offset: int, up_to_offset: int, at_most: int) -> int:
        """How many bytes there are from the batch that holds `offset`, which is in the log, to `up_to_offset`.

        Counted to `at_most`, and not in whole batches: what a long poll goes by.
        """
        try:
            return self.segment_list.bytes_between(offset, up_to_offset, at_most)
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
            return self.segment_list.offset_for_timestamp(timestamp, self.log_start_offset)
        except OSError as error:
            raise self._unreadable(error) from None

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The record with the greatest timestamp, the first of several; None: there is none (KIP-734).

        Raises InvalidRecords as `offset_for_timestamp` does.
        """
        try:
            return self.segment_list.max_timestamp_offset()
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> InvalidRecords:
        return InvalidRecords(ErrorCode.KAFKA_STORAGE_ERROR, self.storage.failed(error))

    def segment_starts(self) -> list[tuple[int, int]]:
        """Base offset and last append (ms) of each segment, oldest first: what ListOffsets v0 goes by."""
        return [(segment.base_offset, segment.last_append_ms) for segment in self.segment_list.with_records()]

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetForLeaderEpoch; (-1, -1) where nothing is known. See LeaderEpochs."""
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def leader_epoch_at(self, offset: int) -> int:
        """The epoch of the record at `offset`, of the last record for the log end offset; -1: not known."""
        return self._epochs.at(offset)

    # Letting go

    def delete_records_before(self, offset: int) -> ErrorCode:
        """Moves the log's start to `offset` (DeleteRecords); memory goes with whole segments."""
        if offset > self.high_watermark:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        try:
            while self.segments and self._end_of_oldest() <= offset and not self._has_only_an_empty_segment():
                self.drop_oldest_segment()
        except OSError as error:
            self.storage.failed(error)
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._move_log_start(offset)
        return ErrorCode.NONE

    def expire_producers(self, now_ms: int) -> None:
        """Forgets producers that have been idle for producer.id.expiration.ms."""
        self._producers.expire(now_ms, self.config.producer_id_expiration_ms)

    def oldest_append_ms(self) -> int | None:
        """When the oldest segment was last appended to; None: there is no segment."""
        segments = self.segment_list.ordered
        return segments[0].last_append_ms if segments else None

    def drop_oldest_segments(self, count: int) -> int:
        """Drop whole segments, oldest first; return how many, fewer than `count` if the disk fails."""
        for dropped in range(count):
            try:
                self.drop_oldest_segment()
            except OSError as error:  # it is tried again with the next check
                self.storage.failed(error)
                return dropped
        return count

    def drop_oldest_segment(self) -> None:
        """Lets the oldest segment go, even the active one, even above the high watermark, which then moves up.

        Readers keep the parts they hold; their memory is free when they let go of them.
        """
        end = self._end_of_oldest()
        segment = self.segment_list.ordered[0]
        if len(self.segment_list.ordered) == 1:
            self._begin()  # first, so that at no time nothing tells where the log ends
        else:
            self.segment_list.drop_oldest()
        self.storage.delete(segment)
        self.size_in_bytes -= segment.size
        self._move_log_start(end)

    def batch_start(self, offset: int) -> int:
        """Where the batch begins that holds `offset`; that itself where none does."""
        header = next((header for header, _ in self.segment_list.batches(offset)), None)
        return offset if header is None else min(offset, header.base_offset)

    def truncate_to(self, offset: int) -> bool:
        """Forgets what is at `offset` or later, and the whole batch that holds it: another leader has something else
        there. The log goes on at `offset`. Returns whether it was longer (UnifiedLog.truncateTo).
        """
        self._epochs.truncate_from_end(offset)
        self.storage.save_epochs(self._epochs)
        if offset >= self.log_end_offset:
            return False
        cut_off = {header.producer_id for header, _ in self.segment_list.batches(offset)}
        self._cut_segments(offset)
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.first_dirty_offset = min(self.first_dirty_offset, offset)
        self._rolls_after = _NOT_KNOWN
        if not self.segment_list.ordered:
            self._begin()
        cut_off.discard(NO_PRODUCER_ID)
        if cut_off:
            self._producers.truncate_from_end(offset, cut_off, self.segment_list.batches(self.log_start_offset))
        self.high_watermark = min(self.high_watermark, offset)
        self._update_last_stable_offset()
        self.storage.truncated(self)
        return True

    def _cut_segments(self, offset: int) -> None:
        while (segment := self.segment_list.pop_from(offset)) is not None:
            self.storage.delete(segment)
            self.size_in_bytes -= segment.size
        if self.segment_list.ordered:
            last = self.segment_list.ordered[-1]
            self.size_in_bytes -= last.size
            last.truncate_to(offset)
            self.size_in_bytes += last.size

    def close(self) -> None:
        """Lets everything go: the partition is deleted."""
        self.storage.forget(self, self.segment_list.ordered)
        self.segment_list = SegmentList()
        self._rolls_after = _NOT_KNOWN
        self.size_in_bytes = 0
        self._move_log_start(self.log_end_offset)

    def _move_log_start(self, offset: int) -> None:
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        if self._epochs.truncate_from_start(offset):
            self.storage.save_epochs(self._epochs)
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
        if self._rolls_after == _NOT_KNOWN and self.segment_list.ordered:
            active = self.segment_list.ordered[-1]
            first = next(active.batches(active.base_offset), None)
            first_timestamp = max_timestamp if first is None else first[0].max_timestamp
            self._rolls_after = self.config.roll_time(self.name, self.log_end_offset, first_timestamp)
            if max_timestamp <= self._rolls_after and active.append(records, last_offset, max_timestamp, now_ms):
                return
        self._roll(len(records), now_ms)
        self._rolls_after = self.config.roll_time(self.name, self.log_end_offset, max_timestamp)
        fits = self.segment_list.ordered[-1].append(records, last_offset, max_timestamp, now_ms)
        assert fits

    def _roll(self, size: int, now_ms: int) -> None:
        """Begins a segment with room for `size` bytes."""
        if self.segment_list.ordered:
            self.storage.segment_filled(self, self.segment_list.ordered[-1])
            # By time, records go when the broker's timer says so, as in Kafka: old timestamps live until then.
            enforce_retention_bytes(self)
        segment = self.storage.begin_segment(self, self.log_end_offset, size, now_ms)
        self.segment_list.append(segment)

    def _restore(self, restored: "RestoredLog") -> None:
        """The log goes on: all of it is replicated, for its replicas have this one log."""
        self.segment_list = SegmentList(restored.segments)
        self._producers, self._epochs = restored.producers, restored.epochs
        self.size_in_bytes = sum(segment.size for segment in self.segment_list.ordered)
        self.log_start_offset, self.log_end_offset = restored.log_start_offset, restored.log_end_offset
        self.high_watermark = self.log_end_offset
        self._producers.truncate_from_start(self.log_start_offset)
        self._update_last_stable_offset()

    def _begin(self) -> None:
        """Makes an empty log what it is: without segments, or with one that is empty."""
        self.segment_list = SegmentList(self.storage.first_segments(self, self.log_end_offset))
        self._rolls_after = _NOT_KNOWN

    def _end_of_oldest(self) -> int:
        """Where the oldest segment ends, with the gap behind it."""
        return self.segment_list.end_of_oldest(self.log_end_offset)

    def _has_only_an_empty_segment(self) -> bool:
        return self.size_in_bytes == 0 and len(self.segment_list.ordered) == 1
