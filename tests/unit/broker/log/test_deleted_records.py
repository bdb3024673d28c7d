"""Deleted records before and after the removal of their segments, in memory and on disk.

The values are those of Apache Kafka 4.4 (`tools/differential/cases/deleted_records.py`), for this log of five batches:

    offset      0     1  |   2     3  |   4
    timestamp   1000  3000 | 2000  5000 | 4000
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.memory_budget import SEGMENTS_IN_BUDGET
from sluice.broker.log.memory_storage import FIRST_SEGMENT_BYTES, MemoryStorage
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.log.retention import enforce_retention
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.log_validator import AppendConfig
from tests.support.disk_logs import NOW_MS, Disk, append, batch

TIMESTAMPS = (1000, 3000, 2000, 5000, 4000)
TIMES = (0, 2500, 3500, 4500, 6000)
KEPT = {"cleanup_deletes": False}
MEMORY_BYTES = 64 * 1024 * 1024

NewLog = Callable[[LogConfig], PartitionLog]


@pytest.fixture(params=["memory", "disk"])
def new_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewLog]:
    if request.param == "memory":
        yield lambda config: PartitionLog("t-0", config, MemoryStorage(MEMORY_BYTES))
        return
    disk = Disk(tmp_path)
    yield lambda config: disk.log(config=config)
    disk.directory.close()


@pytest.fixture(params=[5, FIRST_SEGMENT_BYTES // 2 + 1], ids=["small batches", "a part in memory per batch"])
def value_bytes(request: pytest.FixtureRequest) -> int:
    size: int = request.param
    return size


def batch_of(value_bytes: int, timestamp: int) -> memoryview:
    return batch([bytes(value_bytes)], timestamp=timestamp)


def filled(new_log: NewLog, value_bytes: int, segment_batches: int = 2, **config: int | bool) -> PartitionLog:
    size = len(batch_of(value_bytes, 1000))
    log = new_log(
        LogConfig(AppendConfig(), segment_bytes=segment_batches * size, **{"retention_ms": -1} | config)  # type: ignore[arg-type]
    )
    log.has_followers = False
    for timestamp in TIMESTAMPS:
        append(log, batch_of(value_bytes, timestamp))
    return log


def batches(log: PartitionLog) -> int:
    """Return how many batches the size of the log stands for."""
    count, rest = divmod(log.size_in_bytes, len(batch_of(5, 1000)))
    if rest:
        count, rest = divmod(log.size_in_bytes, len(batch_of(FIRST_SEGMENT_BYTES // 2 + 1, 1000)))
    assert rest == 0
    return count


def offsets_by_time(log: PartitionLog) -> tuple[list[int], int]:
    """Return the offsets of TIMES, and of the greatest timestamp; -1 for none."""
    found = [log.offset_for_timestamp(timestamp) for timestamp in TIMES]
    greatest = log.max_timestamp_offset()
    return [-1 if each is None else each.offset for each in found], -1 if greatest is None else greatest.offset


DELETED = {
    "nothing": (2, 0, ([0, 1, 3, 3, -1], 3), 5, ([0, 1, 3, 3, -1], 3)),
    "a part of the first segment": (2, 1, ([1, 1, 3, 3, -1], 3), 5, ([1, 1, 3, 3, -1], 3)),
    "the first segment": (2, 2, ([-1, -1, 3, 3, -1], 3), 3, ([2, 3, 3, 3, -1], 3)),
    "one and a half": (2, 3, ([-1, -1, 3, 3, -1], 3), 3, ([3, 3, 3, 3, -1], 3)),
    "all but the active segment": (2, 4, ([-1, -1, -1, -1, -1], 3), 1, ([4, 4, 4, -1, -1], 4)),
    "all": (2, 5, ([-1, -1, -1, -1, -1], 3), 1, ([-1, -1, -1, -1, -1], 4)),
    "a part of the only segment": (5, 2, ([2, 3, 3, 3, -1], 3), 5, ([2, 3, 3, 3, -1], 3)),
    "all of the only segment": (5, 5, ([-1, -1, -1, -1, -1], 3), 5, ([-1, -1, -1, -1, -1], 3)),
}


@pytest.mark.parametrize(("segment_batches", "start", "before", "size_after", "after"), DELETED.values(), ids=DELETED)
def test_deleted_records_count_until_their_segment_is_removed(
    new_log: NewLog,
    value_bytes: int,
    segment_batches: int,
    start: int,
    before: tuple[list[int], int],
    size_after: int,
    after: tuple[list[int], int],
) -> None:
    log = filled(new_log, value_bytes, segment_batches)
    assert log.delete_records_before(start) == ErrorCode.NONE
    assert (log.log_start_offset, batches(log), offsets_by_time(log)) == (start, 5, before)
    enforce_retention(log, NOW_MS)
    assert (log.log_start_offset, batches(log), offsets_by_time(log)) == (start, size_after, after)
    assert append(log, batch_of(value_bytes, 1000)) == 5


RETENTION = {
    "by size: nothing": (2, {"retention_bytes": 5}, 0, 5),
    "by size: less than a segment": (2, {"retention_bytes": 4}, 0, 5),
    "by size: a segment": (2, {"retention_bytes": 3}, 2, 3),
    "by size: all but the active segment": (2, {"retention_bytes": 1}, 4, 1),
    "by size: the active segment": (2, {"retention_bytes": 0}, 5, 0),
    "by size: less than the only segment": (5, {"retention_bytes": 2}, 0, 5),
    "by time: nothing": (2, {"retention_ms": 4000}, 0, 5),
    "by time: a segment, not a younger one before an older one": (2, {"retention_ms": 2999}, 2, 3),
    "by time: the active segment": (2, {"retention_ms": 999}, 5, 0),
    "by time: less than the only segment": (5, {"retention_ms": 1000}, 0, 5),
    "by time: the only segment": (5, {"retention_ms": 999}, 5, 0),
    "by neither: an empty policy": (2, {"retention_ms": 0, "retention_bytes": 0, "cleanup_deletes": False}, 0, 5),
}


@pytest.mark.parametrize(("segment_batches", "config", "start", "remaining"), RETENTION.values(), ids=RETENTION)
def test_retention_deletes_whole_segments(
    new_log: NewLog, value_bytes: int, segment_batches: int, config: dict[str, int | bool], start: int, remaining: int
) -> None:
    batch_bytes = len(batch_of(value_bytes, 1000))
    if "retention_bytes" in config:
        config = config | {"retention_bytes": config["retention_bytes"] * batch_bytes}
    log = filled(new_log, value_bytes, segment_batches, **config)
    assert batches(log) == 5, "no check yet"
    enforce_retention(log, 6000)
    assert (log.log_start_offset, batches(log)) == (start, remaining)
    assert append(log, batch_of(value_bytes, 1000)) == 5


def test_an_empty_policy_removes_segments_of_deleted_records(new_log: NewLog) -> None:
    log = filled(new_log, 5, retention_bytes=0, cleanup_deletes=False)
    log.delete_records_before(3)
    enforce_retention(log, NOW_MS)
    assert (log.log_start_offset, batches(log)) == (3, 3)


def test_empty_active_segment_is_kept(new_log: NewLog) -> None:
    log = new_log(LogConfig(AppendConfig(), retention_ms=0, retention_bytes=0))
    assert enforce_retention(log, NOW_MS + 10**9) == 0


def test_segment_above_the_high_watermark_is_kept(new_log: NewLog) -> None:
    log = new_log(LogConfig(AppendConfig(), segment_bytes=1, retention_ms=0))
    log.has_followers = True
    for timestamp in TIMESTAMPS:
        assert log.append(batch_of(5, timestamp), NOW_MS, 0).error_code == ErrorCode.NONE
    log.advance_high_watermark(2)
    enforce_retention(log, NOW_MS)
    assert (log.log_start_offset, batches(log)) == (2, 3)


def test_age_of_a_segment_without_timestamps_counts_from_its_last_append(new_log: NewLog) -> None:
    log = new_log(LogConfig(AppendConfig(), retention_ms=100))
    log.has_followers = False
    append(log, batch_of(5, -1))
    assert enforce_retention(log, NOW_MS + 100) == 0
    assert enforce_retention(log, NOW_MS + 101) == 1


# On disk, after a stop and after a crash


@pytest.mark.parametrize("is_checked", [False, True], ids=["before the check", "after the check"])
@pytest.mark.parametrize(
    ("start", "restored", "size_after"), [(1, 0, 5), (2, 2, 3), (3, 2, 3), (4, 4, 1), (5, 4, 1)], ids=str
)
def test_crash_before_the_checkpoint_restores_the_records_of_the_remaining_segments(
    tmp_path: Path, start: int, restored: int, size_after: int, is_checked: bool
) -> None:
    disk = Disk(tmp_path)
    log = filled(lambda config: disk.log(config=config), 5)
    log.delete_records_before(start)
    if is_checked:
        enforce_retention(log, NOW_MS)
    disk.crash()
    reopened = disk.log()
    assert (reopened.log_start_offset, batches(reopened)) == ((restored, size_after) if is_checked else (0, 5))


@pytest.mark.parametrize("start", range(1, 6))
def test_stored_log_start_survives_a_crash_before_the_check(tmp_path: Path, start: int) -> None:
    disk = Disk(tmp_path)
    log = filled(lambda config: disk.log(config=config), 5)
    log.delete_records_before(start)
    found = offsets_by_time(log)
    disk.directory.save_log_starts()
    disk.directory.flusher.finish()
    disk.crash()
    reopened = disk.log(config=log.config)
    assert (reopened.log_start_offset, batches(reopened), offsets_by_time(reopened)) == (start, 5, found)
    enforce_retention(reopened, NOW_MS)
    assert (reopened.log_start_offset, batches(reopened)) == (start, (5, 5, 3, 3, 1, 1)[start])


# In memory, where a segment has parts


def test_parts_of_a_segment_end_where_the_segment_does() -> None:
    log = PartitionLog("t-0", LogConfig(AppendConfig(), segment_bytes=10_000), MemoryStorage(MEMORY_BYTES))
    for _ in range(9):
        append(log, batch_of(3000, NOW_MS))
    assert [(part.base_offset, part.continues) for part in log.segments] == [
        (0, False),
        (1, True),
        (2, True),
        (3, False),
        (4, True),
        (5, True),
        (6, False),
        (8, True),
    ]


def test_parts_of_a_segment_roll_by_the_timestamp_of_its_first_batch() -> None:
    config = LogConfig(AppendConfig(), segment_ms=10)
    log = PartitionLog("t-0", config, MemoryStorage(MEMORY_BYTES))
    for after_ms in (0, 6, 10, 11, 12, 21, 22):
        append(log, batch_of(3000, NOW_MS + after_ms))
        log.update_config(config)  # forgets when the segment rolls
    assert [part.base_offset for part in log.segments if not part.continues] == [0, 3, 6]


@pytest.mark.parametrize("start", [3, 5], ids=["of a full segment", "of the active segment"])
def test_memory_of_deleted_records_is_used_before_other_records_are_evicted(start: int) -> None:
    storage = MemoryStorage(SEGMENTS_IN_BUDGET * FIRST_SEGMENT_BYTES)
    config = LogConfig(AppendConfig(), segment_bytes=FIRST_SEGMENT_BYTES)
    older, deleted, writer = (PartitionLog(name, config, storage) for name in ("older-0", "deleted-0", "writer-0"))
    for now_ms, log in enumerate((older, deleted), NOW_MS):
        log.has_followers = False
        for _ in range(5):
            assert log.append(batch_of(3000, NOW_MS), now_ms, 0).error_code == ErrorCode.NONE
    deleted.delete_records_before(start)
    for _ in range(SEGMENTS_IN_BUDGET - 10 + start - 1):  # one less, because of index entries
        assert writer.append(batch_of(3000, NOW_MS), NOW_MS + 2, 0).error_code == ErrorCode.NONE
        assert storage.budget.used_bytes <= storage.budget.limit_bytes * 1.01
    assert [log.log_start_offset for log in (older, deleted, writer)] == [0, start, 0]
    assert len(deleted.segments) == 5 - start
    assert writer.append(batch_of(3000, NOW_MS), NOW_MS + 2, 0).error_code == ErrorCode.NONE
    assert older.log_start_offset == 1


def test_deleted_records_of_a_closed_log_are_not_evicted() -> None:
    storage = MemoryStorage(2 * FIRST_SEGMENT_BYTES)
    log, writer = (PartitionLog(name, LogConfig(AppendConfig()), storage) for name in ("t-0", "writer-0"))
    log.has_followers = False
    append(log, batch_of(3000, NOW_MS))
    log.delete_records_before(1)
    log.close()
    for offset in range(3):
        assert append(writer, batch_of(3000, NOW_MS)) == offset
