"""The next log to clean and its cleanable part, as in Kafka's LogCleanerManager."""

import pytest
from msgspec.structs import replace

from sluice.broker.log.cleaner.cleaner import LogCleaning
from sluice.broker.log.cleaner.selection import filthiest, to_clean
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.memory_storage import MemoryStorage
from sluice.broker.log.partition_log import PartitionLog
from sluice.protocol.records.build import COMMIT, build_batch, build_transaction_marker
from sluice.protocol.records.log_validator import COORDINATOR, AppendConfig
from sluice.protocol.records.record import Record

NOW_MS = 1_700_000_000_000
# Batches are 10 ms apart, so each one starts a segment.
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
    selected = to_clean(log, now_ms)
    cleaning = LogCleaning(log, selected.first_dirty_offset, selected.first_uncleanable_offset, now_ms, 1000)
    for _ in cleaning.steps():
        pass
    log.first_dirty_offset = cleaning.end_offset


def test_all_but_the_active_segment_can_be_cleaned() -> None:
    selected = to_clean(log_of(5), NOW_MS)
    assert (selected.first_dirty_offset, selected.first_uncleanable_offset) == (0, 4)
    assert (selected.clean_bytes, selected.cleanable_bytes) == (0, sum(s.size for s in selected.log.segments[:4]))
    assert selected.cleanable_ratio == 1.0


def test_cleaned_segments_are_not_dirty() -> None:
    log = log_of(5)
    clean(log)
    append(log, NOW_MS + 100)
    selected = to_clean(log, NOW_MS)
    assert (selected.first_dirty_offset, selected.first_uncleanable_offset) == (4, 5)
    assert (selected.clean_bytes, selected.cleanable_bytes) == (log.segments[0].size, log.segments[1].size)
    assert selected.cleanable_ratio == 0.5


@pytest.mark.parametrize(("batches", "bytes_"), [(0, 0), (1, 0)])
def test_log_without_inactive_segments_is_not_cleanable(batches: int, bytes_: int) -> None:
    selected = to_clean(log_of(batches), NOW_MS)
    assert selected.cleanable_bytes == bytes_
    assert not selected.is_due


def test_segments_above_the_high_watermark_are_not_cleanable() -> None:
    log = log_of(0)
    log.has_followers = True
    for number in range(5):
        append(log, NOW_MS + number * 10)
    assert to_clean(log, NOW_MS).cleanable_bytes == 0
    log.advance_high_watermark(3)
    assert to_clean(log, NOW_MS).first_uncleanable_offset == 3


def test_segments_of_an_open_transaction_are_not_cleanable() -> None:
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


COMPACTION_LAGS = {
    "no lag: all but the active segment": (0, 4),
    "all segments are older than the lag": (1, 4),
    "the last inactive segment is younger than the lag": (25, 3),
    "all segments are younger than the lag": (1000, 0),
}


@pytest.mark.parametrize(("lag_ms", "uncleanable"), COMPACTION_LAGS.values(), ids=COMPACTION_LAGS)
def test_segments_younger_than_min_compaction_lag_are_not_cleanable(lag_ms: int, uncleanable: int) -> None:
    log = log_of(5, replace(COMPACTED, min_compaction_lag_ms=lag_ms))
    assert to_clean(log, NOW_MS + 50).first_uncleanable_offset == uncleanable


DUE = {
    "dirty ratio above min.cleanable.dirty.ratio": (0.4, 2**63 - 1, True),
    "dirty ratio equal to min.cleanable.dirty.ratio": (0.5, 2**63 - 1, False),
    "age of the oldest dirty batch equal to max.compaction.lag.ms": (1.0, 200, False),
    "age of the oldest dirty batch above max.compaction.lag.ms": (1.0, 199, True),
}


@pytest.mark.parametrize(("ratio", "lag_ms", "is_due"), DUE.values(), ids=DUE)
def test_log_is_due_for_cleaning(ratio: float, lag_ms: int, is_due: bool) -> None:
    log = log_of(5)
    clean(log)
    append(log, NOW_MS + 100)
    log.update_config(replace(COMPACTED, min_cleanable_dirty_ratio=ratio, max_compaction_lag_ms=lag_ms))
    assert to_clean(log, NOW_MS + 40 + 200).is_due is is_due


def test_compacted_log_with_the_highest_dirty_ratio_is_cleaned_first() -> None:
    cleaner, dirtier = log_of(5, name="a-0"), log_of(3, name="b-0")
    clean(cleaner)
    append(cleaner, NOW_MS + 100)
    append(cleaner, NOW_MS + 200)
    uncompacted = log_of(9, replace(COMPACTED, append=AppendConfig()), name="c-0")
    selected = filthiest([cleaner, uncompacted, dirtier], NOW_MS)
    assert selected is not None
    assert selected.log is dirtier
    assert filthiest([uncompacted], NOW_MS) is None


CHECKPOINTS = {"before the log start offset": 1, "beyond the log end offset": 100}


@pytest.mark.parametrize("first_dirty_offset", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_checkpoint_outside_the_log_makes_the_whole_log_dirty(first_dirty_offset: int) -> None:
    log = log_of(5)
    log.delete_records_before(2)
    log.first_dirty_offset = first_dirty_offset
    assert to_clean(log, NOW_MS).first_dirty_offset == 2
