"""Which log is cleaned next, and how far, as Kafka's LogCleanerManager has it."""

import pytest
from msgspec.structs import replace

from sluice.broker.log.cleaner.cleaner import LogCleaning
from sluice.broker.log.cleaner.compacted_log import CompactedLog
from sluice.broker.log.cleaner.selection import filthiest, to_clean
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.memory_storage import MemoryStorage
from sluice.broker.log.partition_log import PartitionLog
from sluice.protocol.records.build import COMMIT, build_batch, build_transaction_marker
from sluice.protocol.records.log_validator import COORDINATOR, AppendConfig
from sluice.protocol.records.record import Record

NOW_MS = 1_700_000_000_000
# Every batch is 10 ms after the one before, and goes into a segment of its own.
COMPACTED = LogConfig(AppendConfig(compacted=True), segment_ms=5)


def log_of(batches: int, config: LogConfig = COMPACTED, name: str = "t-0") -> PartitionLog:
    log = PartitionLog(name, config, MemoryStorage(2**26))
    log.has_followers = False
    for number in range(batches):
        append(log, NOW_MS + number * 10)
    return log


def append(log: PartitionLog, timestamp: int, **fields: int | bool) -> None:
    batch = build_batch([Record(0, timestamp, b"k", b"v")], **fields)  # type: ignore[arg-type]
    assert log.append(memoryview(bytearray(batch)), NOW_MS, 0).error_code == 0


def clean(log: PartitionLog, now_ms: int = NOW_MS) -> None:
    found = to_clean(log, now_ms)
    cleaning = LogCleaning(CompactedLog(log), found.first_dirty_offset, found.first_uncleanable_offset, now_ms, 1000)
    for _ in cleaning.steps():
        pass
    log.first_dirty_offset = cleaning.end_offset


def test_all_but_the_active_segment_can_be_cleaned() -> None:
    found = to_clean(log_of(5), NOW_MS)
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (0, 4)
    assert (found.clean_bytes, found.cleanable_bytes) == (0, sum(s.size for s in found.log.segments[:4]))
    assert found.cleanable_ratio == 1.0


def test_what_was_cleaned_is_clean() -> None:
    log = log_of(5)
    clean(log)
    append(log, NOW_MS + 100)
    found = to_clean(log, NOW_MS)
    assert (found.first_dirty_offset, found.first_uncleanable_offset) == (4, 5)
    assert (found.clean_bytes, found.cleanable_bytes) == (log.segments[0].size, log.segments[1].size)
    assert found.cleanable_ratio == 0.5


@pytest.mark.parametrize(("batches", "bytes_"), [(0, 0), (1, 0)])
def test_log_without_inactive_segments_has_nothing_to_clean(batches: int, bytes_: int) -> None:
    found = to_clean(log_of(batches), NOW_MS)
    assert found.cleanable_bytes == bytes_
    assert not found.is_due


def test_nothing_above_the_high_watermark_is_cleaned() -> None:
    log = log_of(0)
    log.has_followers = True
    for number in range(5):
        append(log, NOW_MS + number * 10)
    assert to_clean(log, NOW_MS).cleanable_bytes == 0
    log.advance_high_watermark(3)
    assert to_clean(log, NOW_MS).first_uncleanable_offset == 3


def test_nothing_of_an_open_transaction_is_cleaned() -> None:
    log = log_of(2)
    append(log, NOW_MS + 30, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    append(log, NOW_MS + 40)
    append(log, NOW_MS + 50)
    assert to_clean(log, NOW_MS).first_uncleanable_offset == 2
    marker = build_transaction_marker(
        COMMIT, offset=0, timestamp=NOW_MS + 50, producer_id=7, producer_epoch=0, coordinator_epoch=0
    )
    log.append(memoryview(bytearray(marker)), NOW_MS, 0, COORDINATOR)
    assert to_clean(log, NOW_MS).first_uncleanable_offset == 4


@pytest.mark.parametrize(
    ("lag_ms", "uncleanable"),
    [
        pytest.param(0, 4, id="no lag: all but the active one"),
        pytest.param(1, 4, id="all are older"),
        pytest.param(25, 3, id="the last is younger"),
        pytest.param(1000, 0, id="all are younger"),
    ],
)
def test_min_compaction_lag_leaves_young_segments(lag_ms: int, uncleanable: int) -> None:
    log = log_of(5, replace(COMPACTED, min_compaction_lag_ms=lag_ms))
    assert to_clean(log, NOW_MS + 50).first_uncleanable_offset == uncleanable


@pytest.mark.parametrize(
    ("ratio", "lag_ms", "is_due"),
    [
        pytest.param(0.4, 2**63 - 1, True, id="more is dirty than the ratio says"),
        pytest.param(0.5, 2**63 - 1, False, id="as much is dirty as the ratio says"),
        pytest.param(1.0, 200, False, id="the oldest dirty batch is no older than the greatest lag"),
        pytest.param(1.0, 199, True, id="the oldest dirty batch is older than the greatest lag"),
    ],
)
def test_log_is_due_where(ratio: float, lag_ms: int, is_due: bool) -> None:
    log = log_of(5)
    clean(log)
    append(log, NOW_MS + 100)
    log.update_config(replace(COMPACTED, min_cleanable_dirty_ratio=ratio, max_compaction_lag_ms=lag_ms))
    assert to_clean(log, NOW_MS + 40 + 200).is_due is is_due


def test_dirtiest_of_the_compacted_logs_goes_first() -> None:
    cleaner, dirtier = log_of(5, name="a-0"), log_of(3, name="b-0")
    clean(cleaner)
    append(cleaner, NOW_MS + 100)
    append(cleaner, NOW_MS + 200)
    uncompacted = log_of(9, replace(COMPACTED, append=AppendConfig()), name="c-0")
    found = filthiest([cleaner, uncompacted, dirtier], NOW_MS)
    assert found is not None
    assert found.log is dirtier
    assert filthiest([uncompacted], NOW_MS) is None


@pytest.mark.parametrize(
    "first_dirty_offset",
    [pytest.param(1, id="lies before the log's start"), pytest.param(100, id="lies beyond the log's end")],
)
def test_log_is_dirty_from_its_start_where_the_checkpoint(first_dirty_offset: int) -> None:
    log = log_of(5)
    log.delete_records_before(2)
    log.first_dirty_offset = first_dirty_offset
    assert to_clean(log, NOW_MS).first_dirty_offset == 2
