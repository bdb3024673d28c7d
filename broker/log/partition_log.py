"""One partition's log: batches are validated, copied once into a segment, and read from it by reference.

Follows Kafka's UnifiedLog and LocalLog. Different on purpose:
- A read returns whole batches. Kafka cuts the last one at max_bytes, and clients discard the incomplete part.
- A read continues through the following segments. Kafka stops at the end of one.
- In memory, a segment consists of parts, and the memory budget evicts parts.
- A batch larger than segment.bytes gets a larger segment. Kafka rejects it (RECORD_LIST_TOO_LARGE).
- Only a batch's timestamp starts a new segment by time (segment.ms). Kafka falls back to the segment's age.
- A truncation keeps the state of producers without records in the removed part. Kafka reloads a snapshot.

Replication calls `advance_high_watermark`, at once with a single replica.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import CONTROL_FLAG, NO_PRODUCER_ID
from sluice.protocol.records.invalid import InvalidRecords, SectionTooLarge, TooManyRecords
from sluice.protocol.records.log_validator import CLIENT, Appendable, AppendConfig, move_to
from sluice.protocol.records.validate import stamp_usual, validate

from .leader_epochs import LeaderEpochs
from .log_config import LogConfig
from .log_results import AppendResult, LogRead, TimestampOffset, invalid_result, verdict_result
from .log_storage import LogSegment, LogStorage, RestoredLog
from .producer_state import AbortedTransaction, Marker, ProducerState, Refusal, StoredBatch, read_marker
from .segment_list import SegmentList

# Value of `_rolls_after` that sends the next append to the slow path: every timestamp is greater.
_ROLL_TIME_UNKNOWN = -2
# Batches above either limit are validated in another thread: a record takes up to 4 us, decompressing 1 MiB 5 ms.
SHORT_RECORDS = 5_000
SHORT_SECTION_BYTES = 1024 * 1024

# Receives the log's name.
ErrorOf = Callable[[str], OSError | None]
Validation = Callable[[], Appendable | InvalidRecords]


class PartitionLog:
    def __init__(self, name: str, config: LogConfig, storage: LogStorage, restored: RestoredLog | None = None) -> None:
        self.name = name
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.last_stable_offset = 0
        self.size_in_bytes = 0
        self.first_dirty_offset = 0  # everything before it is compacted
        self.has_followers = True  # if False, the high watermark moves with every append
        self.storage = storage
        self._producers = ProducerState(name)
        self._epochs = LeaderEpochs()
        self._error_of: ErrorOf | None = None
        self.segment_list: SegmentList
        self.update_config(config)
        if restored is None:
            self._begin()
        else:
            self._restore(restored)

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        self._rolls_after = _ROLL_TIME_UNKNOWN
        # Of `append` and `append_short`; made by the first append, as most partitions of an internal topic get none.
        self._append_configs: tuple[AppendConfig, AppendConfig] | None = None
        self.storage.configure(config)

    def _configure_appends(self) -> tuple[AppendConfig, AppendConfig]:
        any_size = replace(self.config.append, partition=self.name)
        short = replace(any_size, max_section_bytes=SHORT_SECTION_BYTES, max_records=SHORT_RECORDS)
        self._append_configs = any_size, short
        return self._append_configs

    def fail_appends(self, error_of: ErrorOf | None) -> None:
        """Fail appends with the error that `error_of` returns; None: stop."""
        self._error_of = error_of
        self._rolls_after = _ROLL_TIME_UNKNOWN

    def begin_epoch(self, leader_epoch: int) -> None:
        """Record the start of a leader's epoch, even before its first append (Partition.makeLeader)."""
        self._assign_epoch(leader_epoch, self.log_end_offset)

    def _assign_epoch(self, leader_epoch: int, start_offset: int) -> None:
        if leader_epoch != self._epochs.latest:
            self._epochs.assign(leader_epoch, start_offset)
            self.storage.save_epochs(self._epochs)

    @property
    def latest_epoch(self) -> int:
        return self._epochs.latest

    @property
    def segments(self) -> Sequence[LogSegment]:
        """Segments, oldest first; the last is active."""
        return self.segment_list.ordered

    # Appending

    def append(
        self, data: memoryview, now_ms: int, leader_epoch: int, origin: int = CLIENT, transaction_version: int = 0
    ) -> AppendResult:
        """Append one batch, or return an error without changes. The high watermark does not move.

        Args:
            data: A batch of magic 0, 1 or 2, stored as magic 2. Writable data may be changed in place; it is not
                retained.
            now_ms: The wall clock.
            leader_epoch: The partition's leader epoch.
            origin: CLIENT, or COORDINATOR for transaction markers and the coordinator's own topic.
            transaction_version: For a transaction marker.
        """
        first_offset = self.log_end_offset
        config, _ = self._append_configs or self._configure_appends()
        try:
            appendable = validate(data, first_offset, now_ms, leader_epoch, config, origin)
        except InvalidRecords as invalid:
            return invalid_result(invalid, self.log_start_offset)
        return self._store(appendable, now_ms, leader_epoch, origin, transaction_version)

    def append_short(self, data: memoryview, now_ms: int, leader_epoch: int) -> AppendResult | None:
        """Append a client's batch, unless its validation may take more than 20 ms; then return None.

        The caller then runs `validation` in another thread and passes its result to `append_validated`.
        """
        first_offset = self.log_end_offset
        _, config = self._append_configs or self._configure_appends()
        try:
            appendable = validate(data, first_offset, now_ms, leader_epoch, config)
        except (SectionTooLarge, TooManyRecords):
            return None
        except InvalidRecords as invalid:
            return invalid_result(invalid, self.log_start_offset)
        return self._store(appendable, now_ms, leader_epoch, CLIENT, 0)

    def validation(self, data: memoryview, now_ms: int) -> Validation:
        config, _ = self._append_configs or self._configure_appends()

        def validated() -> Appendable | InvalidRecords:
            try:
                return validate(data, 0, now_ms, 0, config)
            except InvalidRecords as invalid:
                return invalid

        return validated

    def append_validated(self, validated: Appendable | InvalidRecords, now_ms: int, leader_epoch: int) -> AppendResult:
        if isinstance(validated, InvalidRecords):
            return invalid_result(validated, self.log_start_offset)
        move_to(validated, self.log_end_offset, leader_epoch)
        return self._store(validated, now_ms, leader_epoch, CLIENT, 0)

    def append_plain(self, data: memoryview, now_ms: int, leader_epoch: int) -> AppendResult | None:
        """Append one non-transactional magic 2 batch that is stored unchanged; return None for any other batch."""
        _, config = self._append_configs or self._configure_appends()
        try:
            appendable = stamp_usual(data, self.log_end_offset, now_ms, leader_epoch, config)
        except InvalidRecords:
            return None
        return None if appendable is None else self._store(appendable, now_ms, leader_epoch, CLIENT, 0)

    def _store(
        self, appendable: Appendable, now_ms: int, leader_epoch: int, origin: int, transaction_version: int
    ) -> AppendResult:
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
            if header.attributes & CONTROL_FLAG:
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
                self._append_slow_path(records, last_offset, max_timestamp, now_ms)
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
        """Return whether it moved."""
        if offset <= self.high_watermark:
            return False
        assert offset <= self.log_end_offset
        self.high_watermark = offset
        self._update_last_stable_offset()
        return True

    # Reading

    def read(self, offset: int, max_bytes: int, up_to_offset: int, min_one_batch: bool) -> LogRead:
        """Return whole batches from the one that contains `offset`, within `max_bytes` and before `up_to_offset`.

        Args:
            offset: From the log start to the log end offset; otherwise the result is OFFSET_OUT_OF_RANGE.
            max_bytes: The limit on the result.
            up_to_offset: The high watermark, last stable offset or log end offset.
            min_one_batch: Return the first batch even if it is larger.
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
        if not self.log_start_offset <= offset < min(up_to_offset, self.log_end_offset):
            return 0
        try:
            return self.segment_list.size_available(offset, max_bytes, up_to_offset, min_one_batch)
        except OSError:
            return 0  # the read reports the error

    def bytes_between(self, offset: int, up_to_offset: int, at_most: int) -> int:
        try:
            return self.segment_list.bytes_between(offset, up_to_offset, at_most)
        except OSError:
            return at_most  # lets the read report the error at once

    def aborted_transactions(self, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """Return the transactions to skip from `offset` up to `upper_offset` (exclusive)."""
        return self._producers.aborted_transactions(offset, upper_offset)

    @property
    def producers(self) -> ProducerState:
        return self._producers

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """Return the first record of at least this timestamp in the first segment that reaches it, or None.

        Raises:
            InvalidRecords: Unreadable records, or a disk error (KAFKA_STORAGE_ERROR).
        """
        try:
            limit = self.config.append.max_decompressed_bytes
            return self.segment_list.offset_for_timestamp(timestamp, self.log_start_offset, self.log_end_offset, limit)
        except OSError as error:
            raise self._unreadable(error) from None

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """Return the first record with the greatest timestamp, or None (KIP-734); raises as `offset_for_timestamp`."""
        try:
            return self.segment_list.max_timestamp_offset(self.config.append.max_decompressed_bytes)
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> InvalidRecords:
        return InvalidRecords(ErrorCode.KAFKA_STORAGE_ERROR, self.storage.failed(error))

    def segment_starts(self) -> list[tuple[int, int]]:
        return [
            (segment.parts[0].base_offset, segment.parts[-1].last_append_ms)
            for segment in self.segment_list.whole(self.log_end_offset)
            if segment.size
        ]

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        return self._epochs.end_offset_for(leader_epoch, self.log_end_offset)

    def leader_epoch_at(self, offset: int) -> int:
        """Return the epoch at `offset` (at the log end, the latest one); -1 if unknown."""
        return self._epochs.at(offset)

    # Deleting

    def delete_records_before(self, offset: int) -> ErrorCode:
        """Move the log start offset; `enforce_retention` removes whole segments before it."""
        if offset > self.high_watermark:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        self._move_log_start(offset)
        self.storage.records_deleted(self)
        return ErrorCode.NONE

    def expire_producers(self, now_ms: int) -> None:
        self._producers.expire(now_ms, self.config.producer_id_expiration_ms)

    def oldest_append_ms(self) -> int | None:
        segments = self.segment_list.ordered
        return segments[0].last_append_ms if segments else None

    def drop_oldest_segments(self, count: int) -> int:
        for dropped in range(count):
            try:
                self.drop_oldest_segment()
            except OSError as error:  # the next check tries again
                self.storage.failed(error)
                return dropped
        return count

    def drop_deleted_segment(self) -> bool:
        is_deleted = self.size_in_bytes > 0 and self._end_of_oldest() <= self.log_start_offset
        if is_deleted:
            self.drop_oldest_segment()
        return is_deleted

    def drop_oldest_segment(self) -> None:
        """Drop the oldest segment, even if it is active or above the high watermark, which then moves up."""
        end = self._end_of_oldest()
        segment = self.segment_list.ordered[0]
        if len(self.segment_list.ordered) == 1:
            self._begin()  # first, so that the log end offset is always stored
        else:
            self.segment_list.drop_oldest()
        self.storage.delete(segment)
        self.size_in_bytes -= segment.size
        self._move_log_start(end)

    def batch_start(self, offset: int) -> int:
        """Return the base offset of the batch with `offset`, or `offset` if there is none."""
        header = next((header for header, _ in self.segment_list.batches(offset)), None)
        return offset if header is None else min(offset, header.base_offset)

    def truncate_to(self, offset: int) -> bool:
        """Remove the batch that contains `offset` and all later ones; return whether there were any.

        The next append gets `offset` (UnifiedLog.truncateTo).
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
        self._rolls_after = _ROLL_TIME_UNKNOWN
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
        self.storage.forget(self, self.segment_list.ordered)
        self.segment_list = SegmentList()
        self._rolls_after = _ROLL_TIME_UNKNOWN
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

    def _append_slow_path(self, records: memoryview, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        if self._error_of is None:
            self._append_and_roll(records, last_offset, max_timestamp, now_ms)
            return
        if (error := self._error_of(self.name)) is not None:
            raise error
        self._append_and_roll(records, last_offset, max_timestamp, now_ms)
        self._rolls_after = _ROLL_TIME_UNKNOWN  # sends the next append here too

    def _append_and_roll(self, records: memoryview, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        if self._rolls_after == _ROLL_TIME_UNKNOWN and self.segment_list.ordered:
            active = self.segment_list.ordered[-1]
            self._rolls_after = self._roll_time(max_timestamp)
            if max_timestamp <= self._rolls_after and active.append(records, last_offset, max_timestamp, now_ms):
                return
        self._begin_segment(len(records), max_timestamp, now_ms)
        active = self.segment_list.ordered[-1]
        if not active.continues:
            self._rolls_after = self.config.roll_time(self.name, self.log_end_offset, max_timestamp)
        fits = active.append(records, last_offset, max_timestamp, now_ms)
        assert fits

    def _roll_time(self, max_timestamp: int) -> int:
        batches = (batch for part in self.segment_list.active_parts() for batch in part.batches(part.base_offset))
        first = next(batches, None)
        first_timestamp = max_timestamp if first is None else first[0].max_timestamp
        return self.config.roll_time(self.name, self.log_end_offset, first_timestamp)

    def _begin_segment(self, size: int, max_timestamp: int, now_ms: int) -> None:
        room = 0
        if parts := self.segment_list.active_parts():
            self.storage.segment_filled(self, parts[-1])
            if max_timestamp <= self._rolls_after:
                room = self.config.segment_bytes - sum(part.size for part in parts)
        segment = self.storage.begin_segment(self, self.log_end_offset, size, room, now_ms)
        self.segment_list.append(segment)

    def _restore(self, restored: RestoredLog) -> None:
        # All of it is replicated, because the replicas share this log.
        self.segment_list = SegmentList(restored.segments)
        self._producers, self._epochs = restored.producers, restored.epochs
        self.size_in_bytes = sum(segment.size for segment in self.segment_list.ordered)
        self.log_start_offset, self.log_end_offset = restored.log_start_offset, restored.log_end_offset
        self.high_watermark = self.log_end_offset
        self._producers.truncate_from_start(self.log_start_offset)
        self._update_last_stable_offset()

    def _begin(self) -> None:
        self.segment_list = SegmentList(self.storage.first_segments(self, self.log_end_offset))
        self._rolls_after = _ROLL_TIME_UNKNOWN

    def _end_of_oldest(self) -> int:
        return self.segment_list.end_of_oldest(self.log_end_offset)
