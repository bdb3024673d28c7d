"""The log of one partition: results of appends and reads, and the offsets."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice.broker.log.cleaner.cleaner import LogCleaning
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.log_manager import LogManager
from sluice.broker.log.log_results import AppendResult, TimestampOffset
from sluice.broker.log.memory_storage import MemoryStorage
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.producer_state import AbortedTransaction
from sluice.broker.log.retention import enforce_retention
from sluice.broker.log.segment_memory import PAGE_BYTES
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import LOG_APPEND_TIME, iter_batches
from sluice.protocol.records.build import ABORT, COMMIT, build_batch
from sluice.protocol.records.log_validator import COORDINATOR, AppendConfig
from sluice.protocol.records.record import Record
from tests.support.disk_logs import NOW_MS, batch, marker

LEADER_EPOCH = 3
MEMORY_BYTES = 64 * 1024 * 1024


def new_log(config: LogConfig | None = None, memory_bytes: int = MEMORY_BYTES) -> PartitionLog:
    return PartitionLog("t-0", config or LogConfig(AppendConfig()), MemoryStorage(memory_bytes))


@pytest.fixture
def log() -> PartitionLog:
    return new_log()


def append(log: PartitionLog, data: memoryview, *, origin: int = 0, now_ms: int = NOW_MS) -> AppendResult:
    """Append as a leader without followers: the batch is committed immediately."""
    result = log.append(data, now_ms, LEADER_EPOCH, origin)
    assert result.error_code == ErrorCode.NONE, result.reason
    log.advance_high_watermark(log.log_end_offset)
    return result


def read_offsets(log: PartitionLog, offset: int, **limits: int) -> list[tuple[int, int]]:
    """Return the first and the last offset of each batch that a read returns."""
    read = log.read(offset, limits.get("max_bytes", 10**9), limits.get("up_to", log.high_watermark), True)
    data = b"".join(read.parts)
    assert len(data) == read.size
    return [(header.base_offset, header.last_offset) for _, header in iter_batches(data)]


# Appending


def test_append_assigns_the_next_offsets(log: PartitionLog) -> None:
    append(log, batch(3))
    result = append(log, batch(2))
    assert result == AppendResult(base_offset=3, last_offset=4, log_append_time_ms=-1, log_start_offset=0)
    assert (log.log_start_offset, log.log_end_offset) == (0, 5)


def test_stored_batches_contain_offsets_and_the_leader_epoch(log: PartitionLog) -> None:
    append(log, batch(3))
    append(log, batch(2))
    stored = b"".join(log.read(0, 10**6, 5, True).parts)
    headers = [header for _, header in iter_batches(stored)]
    assert [(header.base_offset, header.last_offset) for header in headers] == [(0, 2), (3, 4)]
    assert {header.partition_leader_epoch for header in headers} == {LEADER_EPOCH}


def test_append_copies_the_receive_buffer(log: PartitionLog) -> None:
    data = batch([b"kept"])
    append(log, data)
    data[:] = bytes(len(data))
    assert b"kept" in bytes(log.read(0, 10**6, 1, True).parts[0])


def test_read_only_batch_is_stored_and_not_modified(log: PartitionLog) -> None:
    append(log, batch(3))
    sent = bytes(batch(3))
    assert append(log, memoryview(sent)).base_offset == 3
    assert sent == bytes(batch(3))


def test_append_returns_the_log_append_time() -> None:
    log = new_log(LogConfig(AppendConfig(timestamp_type=LOG_APPEND_TIME)))
    assert append(log, batch(2), now_ms=NOW_MS + 7).log_append_time_ms == NOW_MS + 7


def test_append_of_no_data_succeeds(log: PartitionLog) -> None:
    append(log, batch())
    assert log.append(memoryview(b""), NOW_MS, LEADER_EPOCH) == AppendResult(log_start_offset=0)


def with_flipped_bit(data: memoryview) -> memoryview:
    data[-1] ^= 1
    return data


REJECTED = {
    "a checksum mismatch, without the log start offset": (
        with_flipped_bit(batch()),
        AppendResult(error_code=ErrorCode.CORRUPT_MESSAGE),
    ),
    "a batch that is too large, without the log start offset": (
        batch([bytes(1000)]),
        AppendResult(error_code=ErrorCode.MESSAGE_TOO_LARGE),
    ),
    "a gap in the sequence numbers, with the log start offset": (
        batch(producer_id=5, producer_epoch=0, sequence=9),
        AppendResult(error_code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, log_start_offset=1),
    ),
    "an invalid record, with the log start offset and record errors": (
        batch(timestamps=[NOW_MS + 10**10]),
        AppendResult(error_code=ErrorCode.INVALID_TIMESTAMP, log_start_offset=1),
    ),
}


@pytest.mark.parametrize(("data", "expected"), REJECTED.values(), ids=REJECTED)
def test_rejected_batch_changes_nothing(data: memoryview, expected: AppendResult) -> None:
    log = new_log(LogConfig(AppendConfig(max_message_bytes=500)))
    append(log, batch())
    append(log, batch(producer_id=5))
    log.delete_records_before(1)
    result = log.append(data, NOW_MS, LEADER_EPOCH + 1)
    assert result.reason
    assert (result.error_message is not None) == bool(result.record_errors)
    assert bool(result.record_errors) == (result.error_code == ErrorCode.INVALID_TIMESTAMP)
    result.reason, result.error_message, result.record_errors = "", None, ()
    assert result == expected
    assert (log.log_end_offset, log.leader_epoch_at(2)) == (2, LEADER_EPOCH)


def test_duplicate_batch_returns_the_offsets_of_the_first_copy_and_is_not_stored(log: PartitionLog) -> None:
    append(log, batch(2))
    append(log, batch(3, timestamps=[5, 9, 7], producer_id=5))
    result = append(log, batch(3, timestamps=[5, 9, 7], producer_id=5))
    assert result == AppendResult(
        base_offset=2, last_offset=4, log_append_time_ms=9, log_start_offset=0, duplicate=True
    )
    assert log.log_end_offset == 5


# Reading


READS = {
    "below the log start offset": (0, ErrorCode.OFFSET_OUT_OF_RANGE),
    "at the log start offset": (1, ErrorCode.NONE),
    "at the log end offset": (3, ErrorCode.NONE),
    "beyond the log end offset": (4, ErrorCode.OFFSET_OUT_OF_RANGE),
    "negative": (-1, ErrorCode.OFFSET_OUT_OF_RANGE),
}


@pytest.mark.parametrize(("offset", "error_code"), READS.values(), ids=READS)
def test_read_outside_the_log_returns_offset_out_of_range(offset: int, error_code: ErrorCode) -> None:
    log = new_log()
    for _ in range(3):
        append(log, batch())
    log.delete_records_before(1)
    assert log.read(offset, 1000, 3, True).error_code == error_code
    assert (log.size_available(offset, 1000, 3, True) > 0) == (error_code == ErrorCode.NONE and offset < 3)


def test_read_of_an_empty_log_returns_no_data(log: PartitionLog) -> None:
    assert log.read(0, 1000, 0, True).parts == []
    assert log.read(0, 1000, 0, True).error_code == ErrorCode.NONE
    assert log.size_available(0, 1000, 0, True) == 0


def test_read_ends_at_the_high_watermark(log: PartitionLog) -> None:
    append(log, batch(2))
    log.append(batch(3), NOW_MS, LEADER_EPOCH)
    assert read_offsets(log, 0) == [(0, 1)]
    assert read_offsets(log, 0, up_to=log.log_end_offset) == [(0, 1), (2, 4)]
    assert read_offsets(log, 3) == []


def test_read_returns_adjacent_batches_as_one_view(log: PartitionLog) -> None:
    for _ in range(5):
        append(log, batch())
    first, second = (log.read(1, 10**6, 5, True).parts for _ in range(2))
    assert len(first) == 1
    first[0][-1] ^= 0xFF
    assert first == second  # both are views of the same memory


def test_read_continues_across_segments(log: PartitionLog) -> None:
    for _ in range(10):
        append(log, batch([bytes(PAGE_BYTES // 2)]))
    read = log.read(0, 10**6, 10, True)
    assert len(read.parts) > 1
    assert read_offsets(log, 3) == [(offset, offset) for offset in range(3, 10)]
    assert read.next_offset == 10


# Transactions


def test_last_stable_offset_is_the_start_of_the_oldest_open_transaction(log: PartitionLog) -> None:
    append(log, batch(2))
    append(log, batch(producer_id=5, transactional=True))
    append(log, batch(producer_id=6, transactional=True))
    append(log, batch())
    assert (log.last_stable_offset, log.high_watermark) == (2, 5)
    append(log, marker(COMMIT, producer_id=5), origin=COORDINATOR)
    assert log.last_stable_offset == 3
    append(log, marker(ABORT, producer_id=6), origin=COORDINATOR)
    assert log.last_stable_offset == log.high_watermark == 7


def test_last_stable_offset_advances_once_the_marker_is_below_the_high_watermark(log: PartitionLog) -> None:
    append(log, batch(producer_id=5, transactional=True))
    log.append(marker(COMMIT, producer_id=5), NOW_MS, LEADER_EPOCH, COORDINATOR)
    assert (log.last_stable_offset, log.high_watermark) == (0, 1)
    log.advance_high_watermark(2)
    assert log.last_stable_offset == 2


def test_last_stable_offset_is_at_least_the_log_start_offset(log: PartitionLog) -> None:
    append(log, batch(producer_id=5, transactional=True))
    append(log, batch(4))
    log.delete_records_before(3)
    assert (log.log_start_offset, log.last_stable_offset, log.high_watermark) == (3, 3, 5)


def test_aborted_transactions_above_the_log_start_are_returned(log: PartitionLog) -> None:
    append(log, batch(producer_id=5, transactional=True))
    append(log, marker(ABORT, producer_id=5), origin=COORDINATOR)
    append(log, batch(producer_id=6, transactional=True))
    append(log, marker(COMMIT, producer_id=6), origin=COORDINATOR)
    assert log.aborted_transactions(0, 4) == [AbortedTransaction(5, 0, 1, 2)]
    log.delete_records_before(2)
    assert log.aborted_transactions(0, 4) == []


def test_marker_with_an_old_coordinator_epoch_is_fenced(log: PartitionLog) -> None:
    append(log, marker(COMMIT, producer_id=5, coordinator_epoch=2), origin=COORDINATOR)
    result = log.append(marker(COMMIT, producer_id=5, coordinator_epoch=1), NOW_MS, LEADER_EPOCH, COORDINATOR)
    assert result.error_code == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_marker_from_a_client_is_rejected() -> None:
    result = new_log().append(marker(COMMIT, producer_id=5), NOW_MS, LEADER_EPOCH)
    assert result.error_code == ErrorCode.INVALID_RECORD


# Offsets by time and leader


def log_with_times() -> PartitionLog:
    """Return a log with timestamps 10, 30, 20 | 25 | 50, 40 | 50, 45; the third batch is compressed."""
    log = new_log()
    for number, times in enumerate([(10, 30, 20), (25,), (50, 40), (50, 45)]):
        append(log, batch(len(times), timestamps=times, compression=1 if number == 2 else 0))
    return log


TIMESTAMPS = {
    "before the first timestamp": (0, (10, 0)),
    "the first timestamp": (10, (10, 0)),
    "a timestamp inside a batch": (11, (30, 1)),
    "a timestamp in a later batch": (31, (50, 4)),
    "the greatest timestamp": (50, (50, 4)),
    "after the greatest timestamp": (51, None),
}


@pytest.mark.parametrize(("timestamp", "expected"), TIMESTAMPS.values(), ids=TIMESTAMPS)
def test_offset_for_timestamp(timestamp: int, expected: tuple[int, int] | None) -> None:
    found = log_with_times().offset_for_timestamp(timestamp)
    assert found == (None if expected is None else TimestampOffset(*expected, LEADER_EPOCH))


DELETED_TIMESTAMPS = {
    "a record below the log start offset is not found": (2, 25, (25, 3)),
    "a record at the log start offset is found": (2, 20, (20, 2)),
    "a record below it in the same batch is not found": (5, 50, (50, 6)),
}


@pytest.mark.parametrize(("start", "timestamp", "expected"), DELETED_TIMESTAMPS.values(), ids=DELETED_TIMESTAMPS)
def test_offset_for_timestamp_ignores_records_below_the_log_start(
    start: int, timestamp: int, expected: tuple[int, int]
) -> None:
    log = log_with_times()
    log.delete_records_before(start)
    assert log.offset_for_timestamp(timestamp) == TimestampOffset(*expected, LEADER_EPOCH)


def test_offset_for_timestamp_searches_every_segment(log: PartitionLog) -> None:
    for number in range(20):
        append(log, batch([bytes(PAGE_BYTES // 2)], timestamps=[1000 + number]))
    for number in range(20):
        assert log.offset_for_timestamp(1000 + number) == TimestampOffset(1000 + number, number, LEADER_EPOCH)
    assert log.max_timestamp_offset() == TimestampOffset(1019, 19, LEADER_EPOCH)


def test_max_timestamp_offset_is_the_first_record_with_the_greatest_timestamp() -> None:
    assert log_with_times().max_timestamp_offset() == TimestampOffset(50, 4, LEADER_EPOCH)


def test_an_empty_log_has_no_timestamps(log: PartitionLog) -> None:
    assert log.max_timestamp_offset() is None
    assert log.offset_for_timestamp(0) is None


def test_segment_starts_returns_base_offsets_and_times_of_last_appends() -> None:
    log = new_log(LogConfig(AppendConfig(), segment_bytes=PAGE_BYTES))
    assert log.segment_starts() == []
    for number in range(3):
        append(log, batch([bytes(PAGE_BYTES // 3)]), now_ms=NOW_MS + number)
    append(log, batch(), now_ms=NOW_MS + 9)
    assert log.segment_starts() == [(0, NOW_MS + 1), (2, NOW_MS + 9)]


def test_new_leader_epoch_is_known_before_its_first_append(log: PartitionLog) -> None:
    log.begin_epoch(2)
    assert (log.end_offset_for_epoch(2), log.leader_epoch_at(0)) == ((2, 0), 2)
    log.append(batch(), NOW_MS, 2)
    log.begin_epoch(3)
    assert [log.end_offset_for_epoch(epoch) for epoch in (2, 3)] == [(2, 1), (3, 1)]


def test_leader_epoch_ends_at_the_start_of_the_next(log: PartitionLog) -> None:
    for leader_epoch in (3, 3, 5):
        log.append(batch(), NOW_MS, leader_epoch)
    assert log.end_offset_for_epoch(3) == (3, 2)
    assert log.end_offset_for_epoch(5) == (5, 3)
    assert [log.leader_epoch_at(offset) for offset in (0, 1, 2, 3)] == [3, 3, 5, 5]


# Deletion and eviction


def test_delete_records_above_the_high_watermark_is_out_of_range(log: PartitionLog) -> None:
    append(log, batch(2))
    log.append(batch(2), NOW_MS, LEADER_EPOCH)
    assert log.delete_records_before(3) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.delete_records_before(1) == ErrorCode.NONE
    assert (log.log_start_offset, log.size_in_bytes) == (1, 2 * len(batch(2)))


def test_check_releases_the_memory_of_deleted_records_before_the_active_segment() -> None:
    logs = LogManager(MEMORY_BYTES)
    log = logs.create("t-0", LogConfig(AppendConfig(), segment_bytes=PAGE_BYTES))
    for _ in range(100):
        append(log, batch(2))
    full_bytes = logs.budget.used_bytes
    log.delete_records_before(200)
    assert (log.log_start_offset, logs.budget.used_bytes) == (200, full_bytes)
    assert logs.enforce_retention(NOW_MS) > 0
    assert (len(log.segments), logs.budget.used_bytes) == (1, PAGE_BYTES)
    assert append(log, batch()).base_offset == 200
    assert read_offsets(log, 200) == [(200, 200)]


def test_log_of_a_deleted_partition_is_empty(log: PartitionLog) -> None:
    append(log, batch(5))
    log.close()
    assert (log.log_start_offset, log.log_end_offset, log.size_in_bytes) == (5, 5, 0)


def test_delete_records_below_the_log_start_keeps_the_log_start(log: PartitionLog) -> None:
    append(log, batch(5))
    log.delete_records_before(3)
    assert log.delete_records_before(1) == ErrorCode.NONE
    assert log.log_start_offset == 3


def test_memory_limit_evicts_the_log_with_the_oldest_append() -> None:
    logs = LogManager(16 * PAGE_BYTES)
    idle, busy = (logs.create(name, LogConfig(AppendConfig())) for name in ("idle-0", "busy-0"))
    append(idle, batch(7))
    for number in range(100):
        append(busy, batch([bytes(PAGE_BYTES // 8)]), now_ms=NOW_MS + number)
        assert logs.budget.used_bytes <= 16 * PAGE_BYTES * 1.01  # an index entry is 16 bytes
    assert (idle.log_start_offset, idle.log_end_offset, idle.size_in_bytes) == (7, 7, 0)
    assert busy.size_in_bytes > 8 * PAGE_BYTES
    logs.delete("busy-0")
    assert logs.budget.used_bytes == 0
    assert list(logs) == [idle]


def test_batch_larger_than_the_memory_limit_evicts_all_other_batches() -> None:
    log = new_log(memory_bytes=4 * PAGE_BYTES)
    append(log, batch())
    append(log, batch([bytes(10 * PAGE_BYTES)]))
    assert (log.log_start_offset, log.log_end_offset) == (1, 2)
    assert read_offsets(log, 1) == [(1, 1)]
    append(log, batch([bytes(PAGE_BYTES)]))
    assert (log.log_start_offset, log.log_end_offset) == (2, 3)


def test_returned_records_stay_readable_after_their_deletion() -> None:
    log = new_log(LogConfig(AppendConfig(), retention_bytes=0))
    append(log, batch([b"record"]))
    parts = log.read(0, 10**6, 1, True).parts
    enforce_retention(log, NOW_MS)
    assert log.size_in_bytes == 0
    assert b"record" in bytes(parts[0])


def test_updated_config_applies_to_the_next_append(log: PartitionLog) -> None:
    log.update_config(LogConfig(AppendConfig(max_message_bytes=70)))
    result = log.append(batch([bytes(100)]), NOW_MS, LEADER_EPOCH)
    assert result.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert "t-0" in result.reason


# Truncation


def log_of_three() -> PartitionLog:
    """Return a log with batches at offsets 0-2, 3-4 and 5-9."""
    log = new_log()
    for records in (3, 2, 5):
        append(log, batch(records))
    return log


TRUNCATIONS = {
    "at the start of a batch": (5, 5, [(0, 2), (3, 4)]),
    "inside a batch: it is removed whole and leaves a gap": (7, 7, [(0, 2), (3, 4)]),
    "inside the first batch": (1, 1, []),
    "at the start of the log": (0, 0, []),
}


@pytest.mark.parametrize(("offset", "expected", "remaining"), TRUNCATIONS.values(), ids=TRUNCATIONS)
def test_truncated_log_continues_at_the_requested_offset(
    offset: int, expected: int, remaining: list[tuple[int, int]]
) -> None:
    log = log_of_three()
    parts = log.read(0, 10**6, 10, True).parts
    before = [bytes(part) for part in parts]
    assert log.truncate_to(offset)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (expected, expected, expected)
    assert append(log, batch(2)).base_offset == expected
    assert read_offsets(log, 0) == [*remaining, (expected, expected + 1)]
    assert read_offsets(log, expected) == [(expected, expected + 1)], "a batch after a gap can be read"
    assert log.size_in_bytes == log.read(0, 10**6, log.log_end_offset, True).size
    assert [bytes(part) for part in parts] == before, "returned records are not overwritten"


@pytest.mark.parametrize("offset", [10, 11])
def test_truncation_at_or_beyond_the_log_end_does_nothing(offset: int) -> None:
    log = log_of_three()
    assert not log.truncate_to(offset)
    assert (log.log_end_offset, read_offsets(log, 5)) == (10, [(5, 9)])


def test_truncation_below_the_log_start_moves_the_log_start() -> None:
    log = log_of_three()
    log.delete_records_before(5)
    assert log.truncate_to(2)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (2, 2, 2)


def test_truncation_keeps_a_lower_high_watermark() -> None:
    log = log_of_three()
    log.log_end_offset, log.high_watermark = 10, 3
    log.truncate_to(5)
    assert log.high_watermark == 3


def test_truncation_removes_later_leader_epochs(log: PartitionLog) -> None:
    for epoch in (1, 2, 5):
        log.append(batch(10), NOW_MS, epoch)
    log.truncate_to(15)
    assert log.end_offset_for_epoch(5) == (-1, -1)
    assert log.end_offset_for_epoch(2) == (2, 15)
    log.truncate_to(10)
    assert log.end_offset_for_epoch(1) == (1, 10)


def test_producer_can_resend_a_truncated_batch(log: PartitionLog) -> None:
    append(log, batch(2, producer_id=7, sequence=0))
    append(log, batch(1, producer_id=8, sequence=0))
    append(log, batch(2, producer_id=7, sequence=2))
    log.truncate_to(3)
    assert append(log, batch(2, producer_id=7, sequence=2)).base_offset == 3
    assert append(log, batch(1, producer_id=8, sequence=0)).duplicate
    assert append(log, batch(2, producer_id=7, sequence=0)).duplicate


def test_truncation_of_all_batches_of_a_producer_removes_its_state(log: PartitionLog) -> None:
    append(log, batch(1, producer_id=7, sequence=0))
    log.truncate_to(0)
    assert len(log.producers) == 0


def test_truncation_of_a_marker_reopens_its_transaction(log: PartitionLog) -> None:
    append(log, batch(2, producer_id=7, sequence=0, transactional=True))
    append(log, batch(2, producer_id=8, sequence=0, transactional=True))
    append(log, marker(ABORT, producer_id=8), origin=COORDINATOR)
    append(log, marker(ABORT, producer_id=7), origin=COORDINATOR)
    log.truncate_to(5)
    assert log.last_stable_offset == 0
    assert [aborted.producer_id for aborted in log.aborted_transactions(0, 5)] == [8]
    append(log, marker(COMMIT, producer_id=7), origin=COORDINATOR)
    assert (log.last_stable_offset, log.log_end_offset) == (6, 6)
    assert [aborted.producer_id for aborted in log.aborted_transactions(0, 6)] == [8]


def test_truncated_transaction_does_not_limit_the_last_stable_offset(log: PartitionLog) -> None:
    append(log, batch(2))
    append(log, batch(2, producer_id=7, sequence=0, transactional=True))
    assert log.last_stable_offset == 2
    log.truncate_to(2)
    append(log, batch(1))
    assert log.last_stable_offset == 3


# Model


class LogAgainstModel(RuleBasedStateMachine):
    """Random appends, reads, deletions and truncations, with evictions, compared with a list of batches."""

    def __init__(self) -> None:
        super().__init__()
        # The memory is enough for four segments of 4 KiB.
        self.log = new_log(LogConfig(AppendConfig(), segment_bytes=PAGE_BYTES), memory_bytes=4 * PAGE_BYTES)
        self.stored: list[tuple[int, int, bytes]] = []  # first offset, last offset, stored batch
        self.end_offset = 0

    @rule(records=st.integers(1, 4), value_size=st.sampled_from([0, 50, 700, 3000, 9000]), fill=st.integers(0, 255))
    def append(self, records: int, value_size: int, fill: int) -> None:
        data = batch([bytes([fill]) * value_size] * records)
        result = append(self.log, data)
        assert (result.base_offset, result.last_offset) == (self.end_offset, self.end_offset + records - 1)
        self.stored.append((result.base_offset, result.last_offset, bytes(data)))
        self.end_offset += records

    @precondition(lambda self: self.end_offset > self.log.log_start_offset)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log.log_start_offset, self.end_offset))
        assert self.log.delete_records_before(offset) == ErrorCode.NONE
        assert self.log.log_start_offset == offset

    @rule()
    def check(self) -> None:
        start = self.log.log_start_offset
        enforce_retention(self.log, NOW_MS)
        assert self.log.log_start_offset == start

    @precondition(lambda self: self.end_offset > self.log.log_start_offset)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.log.log_start_offset, self.end_offset - 1))
        assert self.log.truncate_to(offset)
        self.stored = [entry for entry in self.stored if entry[1] < offset]
        self.end_offset = offset

    @precondition(lambda self: self.end_offset > self.log.log_start_offset)
    @rule(data=st.data(), max_bytes=st.integers(0, 20_000), min_one_batch=st.booleans())
    def read(self, data: st.DataObject, max_bytes: int, min_one_batch: bool) -> None:
        offset = data.draw(st.integers(self.log.log_start_offset, self.end_offset))
        up_to_offset = data.draw(st.integers(offset, self.end_offset))
        expected, size, next_offset = [], 0, offset
        for _, last_offset, stored in self.stored:
            if last_offset < offset:
                continue
            fits = size + len(stored) <= max_bytes or (min_one_batch and size == 0)
            if not fits or last_offset >= up_to_offset:
                break
            expected.append(stored)
            size += len(stored)
            next_offset = last_offset + 1
        read = self.log.read(offset, max_bytes, up_to_offset, min_one_batch)
        assert b"".join(read.parts) == b"".join(expected)
        assert (read.size, read.error_code) == (size, ErrorCode.NONE)
        assert read.next_offset == next_offset
        assert self.log.size_available(offset, max_bytes, up_to_offset, min_one_batch) == size
        if offset < up_to_offset:
            available = sum(len(stored) for _, last, stored in self.stored if offset <= last < up_to_offset)
            assert self.log.bytes_between(offset, up_to_offset, max_bytes) == min(available, max_bytes)

    @invariant()
    def offsets_are_in_order(self) -> None:
        log = self.log
        assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset
        assert log.log_end_offset == self.end_offset

    @invariant()
    def newest_batch_is_kept(self) -> None:
        if self.stored and self.log.log_start_offset <= self.stored[-1][1]:
            assert read_offsets(self.log, self.stored[-1][1]) == [self.stored[-1][:2]]


LogAgainstModel.TestCase.settings = settings(max_examples=settings().max_examples // 2, stateful_step_count=40)
TestLogAgainstModel = LogAgainstModel.TestCase


def compact(log: PartitionLog) -> None:
    """Clean all but the active segment."""
    cleaning = LogCleaning(log, 0, log.segments[-1].base_offset, NOW_MS, 1000)
    for _ in cleaning.steps():
        pass


def keyed(key: bytes, timestamp: int) -> memoryview:
    return memoryview(bytearray(build_batch([Record(0, timestamp, key, b"v")])))


def test_reads_skip_records_removed_by_compaction() -> None:
    # One batch per segment; after cleaning, no two fit into one segment.
    config = LogConfig(AppendConfig(), segment_bytes=100, segment_ms=5)
    log = new_log(config)
    for number, key in enumerate((b"a", b"b", b"a", b"a", b"b", b"c")):
        append(log, keyed(key, NOW_MS + number * 10))
    log.advance_high_watermark(6)
    compact(log)
    assert [(segment.base_offset, segment.size > 0) for segment in log.segments] == [(n, n >= 3) for n in range(6)]
    for offset in range(4):
        assert read_offsets(log, offset) == [(3, 3), (4, 4), (5, 5)]
        assert log.size_available(offset, 10**6, 6, True) == log.read(offset, 10**6, 6, True).size
        assert log.bytes_between(offset, 6, 10**6) == log.size_in_bytes
    assert log.read(0, 10**6, 3, True).size == 0
    # As in Kafka, an empty segment has the time of its last append, which is later.
    assert log.offset_for_timestamp(NOW_MS) is None
    assert log.offset_for_timestamp(NOW_MS + 1) == TimestampOffset(NOW_MS + 30, 3, LEADER_EPOCH)
    assert log.end_offset_for_epoch(LEADER_EPOCH) == (LEADER_EPOCH, 6)
    assert log.delete_records_before(4) == ErrorCode.NONE
    assert read_offsets(log, 4) == [(4, 4), (5, 5)]


def test_returned_records_stay_readable_after_compaction() -> None:
    log = new_log(LogConfig(AppendConfig(), segment_ms=5))
    for number in range(3):
        append(log, keyed(b"a", NOW_MS + number * 10))
    log.advance_high_watermark(3)
    parts = log.read(0, 10**6, 3, True).parts
    before = [bytes(part) for part in parts]
    compact(log)
    for number in range(100):
        append(log, keyed(b"b", NOW_MS + 100 + number * 10))
    assert [bytes(part) for part in parts] == before


ROLLS = {
    "segment.ms defaults to a week": ({}, [0, 6 * 86_400_000, 8 * 86_400_000], [0, 2]),
    "a segment ends more than segment.ms after its first batch": ({"segment_ms": 10}, [0, 10, 11, 12], [0, 2]),
    "the first batch counts, not the oldest timestamp": ({"segment_ms": 10}, [20, 0, 5, 31], [0, 3]),
    "no limit if the first batch has no timestamp": ({"segment_ms": 10}, [-1, 0, 100], [0]),
    "max.compaction.lag.ms is ignored if the log is not compacted": (
        {"segment_ms": 100, "max_compaction_lag_ms": 10},
        [0, 11],
        [0],
    ),
    "max.compaction.lag.ms ends a segment if the log is compacted": (
        {"segment_ms": 100, "max_compaction_lag_ms": 10, "append": AppendConfig(compacted=True)},
        [0, 11],
        [0, 1],
    ),
}


@pytest.mark.parametrize(("config", "timestamps", "segments"), ROLLS.values(), ids=ROLLS)
def test_segments_roll_by_time(config: dict[str, Any], timestamps: list[int], segments: list[int]) -> None:
    log = new_log(LogConfig(**({"append": AppendConfig()} | config)))
    for timestamp in timestamps:
        time_ms = NOW_MS + timestamp if timestamp >= 0 else -1
        append(log, keyed(b"k", time_ms), now_ms=max(time_ms, NOW_MS))
    assert [segment.base_offset for segment in log.segments] == segments


def test_segment_jitter_rolls_segments_of_different_logs_at_different_times() -> None:
    def batches_in_first_segment(name: str) -> int:
        config = LogConfig(AppendConfig(), segment_ms=50, segment_jitter_ms=40)
        log = PartitionLog(name, config, MemoryStorage(MEMORY_BYTES))
        while len(log.segments) < 2:
            append(log, keyed(b"k", NOW_MS + log.log_end_offset))
        return log.segments[1].base_offset

    counts = {batches_in_first_segment(f"t-{index}") for index in range(20)}
    assert len(counts) > 10
    assert min(counts) > 10
    assert max(counts) <= 51
    assert batches_in_first_segment("t-0") == batches_in_first_segment("t-0")


def test_altered_segment_ms_applies_to_the_active_segment(log: PartitionLog) -> None:
    for timestamp in (0, 20):
        append(log, keyed(b"k", NOW_MS + timestamp))
    assert len(log.segments) == 1
    log.update_config(LogConfig(AppendConfig(), segment_ms=10))
    append(log, keyed(b"k", NOW_MS + 5))
    assert len(log.segments) == 1
    append(log, keyed(b"k", NOW_MS + 11))
    assert len(log.segments) == 2
