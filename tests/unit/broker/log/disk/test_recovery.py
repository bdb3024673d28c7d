"""Recovery of a log after a clean stop, after a crash, and with damaged files."""

import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.broker.log.disk.file_names import SNAPSHOT, file_name
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.log_results import TimestampOffset
from sluice.broker.log.partition_log import PartitionLog
from sluice.errors import SluiceError
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import MAGIC_AT
from sluice.protocol.records.build import ABORT, COMMIT
from sluice.protocol.records.log_validator import AppendConfig
from tests.support.disk_logs import NOW_MS, Disk, append, batch, batches_in, end_transaction

BATCHES = [(0, 2), (3, 4), (5, 8), (9, 9), (10, 14)]
LAST_SEGMENT = file_name(0, ".log")


def filled(disk: Disk) -> PartitionLog:
    log = disk.log()
    for first, last in BATCHES:
        assert append(log, batch(last - first + 1, producer_id=7, sequence=first)) == first
    return log


def flip(path: Path, position: int, bits: int = 1) -> None:
    """Flip bits of one byte of a file."""
    data = bytearray(path.read_bytes())
    data[position] ^= bits
    path.write_bytes(data)


AFTER_A_STOP_OR_CRASH = pytest.mark.parametrize("restart", [Disk.stop, Disk.crash])


@AFTER_A_STOP_OR_CRASH
def test_log_is_restored_after_a_restart(log: PartitionLog, disk: Disk, restart: Callable[[Disk], None]) -> None:
    for number in range(40):
        append(log, batch([bytes(100)] * 2, timestamp=NOW_MS + number), leader_epoch=number // 20)
    before = batches_in(log)
    restart(disk)
    reopened = disk.log()
    assert len(reopened.segments) == len(log.segments) > 5
    assert batches_in(reopened) == before
    assert (reopened.log_start_offset, reopened.log_end_offset, reopened.high_watermark) == (0, 80, 80)
    assert reopened.size_in_bytes == log.size_in_bytes
    assert [reopened.end_offset_for_epoch(epoch) for epoch in (0, 1)] == [(0, 40), (1, 80)]
    for number in range(40):
        expected = TimestampOffset(NOW_MS + number, 2 * number, leader_epoch=number // 20)
        assert reopened.offset_for_timestamp(NOW_MS + number) == expected
        assert batches_in(reopened, 2 * number + 1)[0] == (2 * number, 2 * number + 1)
    assert append(reopened, batch()) == 80


@pytest.mark.parametrize("reopens", [False, True])
def test_greatest_timestamp_is_found_among_batches_without_an_index_entry(disk: Disk, reopens: bool) -> None:
    log = disk.log(config=LogConfig(AppendConfig()))
    for timestamp in (NOW_MS, NOW_MS + 1, NOW_MS + 9, NOW_MS + 9, NOW_MS):
        append(log, batch([b"v"], timestamp=timestamp))
    if reopens:
        disk.stop()
        log = disk.log(config=LogConfig(AppendConfig()))
    assert log.max_timestamp_offset() == TimestampOffset(NOW_MS + 9, 2, 0)


@AFTER_A_STOP_OR_CRASH
def test_tail_torn_at_any_byte_is_truncated_at_the_start_of_its_batch(
    tmp_path: Path, restart: Callable[[Disk], None]
) -> None:
    disk = Disk(tmp_path / "disk")
    log = filled(disk)
    whole = log.size_in_bytes
    start = log.segments[-1].span(10, 0, 15, False)[0]
    restart(disk)
    disk.directory.unlock()
    if restart is Disk.stop:
        (tmp_path / "disk" / ".kafka_cleanshutdown").touch()
    for size in range(start, whole):
        torn = tmp_path / f"torn-{size}"
        shutil.copytree(tmp_path / "disk", torn)
        with (torn / "t-0" / LAST_SEGMENT).open("r+b") as file:
            file.truncate(size)
        copied = Disk(torn)
        reopened = copied.log()
        assert batches_in(reopened) == BATCHES[:-1], f"torn at byte {size}"
        assert (torn / "t-0" / LAST_SEGMENT).stat().st_size == start
        assert reopened.log_end_offset == 10
        # The producer retries the batch that was not acknowledged.
        assert append(reopened, batch(5, producer_id=7, sequence=10)) == 10
        copied.directory.unlock()
        shutil.rmtree(torn)


@pytest.mark.parametrize("position", [0, 8, 16, 17, 23, 60, 61, 70])
def test_modified_byte_after_the_recovery_point_truncates_the_log_at_its_batch(
    disk: Disk, position: int, caplog: pytest.LogCaptureFixture
) -> None:
    log = filled(disk)
    start = log.segments[-1].span(5, 0, 15, False)[0]
    path = disk.file(LAST_SEGMENT)
    flip(path, start + position, 0x41)
    disk.crash()
    reopened = disk.log()
    assert batches_in(reopened) == BATCHES[:2]
    cut = [record for record in caplog.records if record.message == "truncating the log"]
    assert [(record.byte, record.offset) for record in cut] == [(start, 5)]  # type: ignore[attr-defined]
    assert cut[0].file == str(path)  # type: ignore[attr-defined]


def test_batch_longer_than_its_file_is_truncated(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    log = filled(disk)
    start = log.segments[-1].span(10, 0, 15, False)[0]
    path = disk.file(LAST_SEGMENT)
    data = bytearray(path.read_bytes())
    data[start + 8 : start + 12] = (2**31 - 1).to_bytes(4)
    path.write_bytes(data)
    disk.crash()
    disk.log()
    (cut,) = (record for record in caplog.records if record.message == "truncating the log")
    reason = f"incomplete batch; expected {2**31 - 1 + 12} bytes, got {len(data) - start}"
    assert cut.reason == reason  # type: ignore[attr-defined]


BASE_OFFSETS = {
    "too high, so that it overlaps the next batch": (1, 4),
    "too low, so that it overlaps the previous batch": (2, 1),
    "too low, so that a search skips it": (2, 4),
    "beyond the end of the log": (2, 64),
}


def flip_base_offset(disk: Disk, log: PartitionLog, number: int, flipped: int) -> None:
    start = log.segments[-1].span(BATCHES[number][0], 0, 15, False)[0]
    flip(disk.file(LAST_SEGMENT), start + 7, flipped)


@pytest.mark.parametrize(("number", "flipped"), BASE_OFFSETS.values(), ids=BASE_OFFSETS)
def test_read_ends_before_a_batch_with_a_wrong_base_offset(disk: Disk, number: int, flipped: int) -> None:
    log = filled(disk)
    disk.stop()
    flip_base_offset(disk, log, number, flipped)
    reopened = disk.log()
    assert batches_in(reopened) == BATCHES[:number]
    damaged = reopened.read(BATCHES[number][0], 1000, 15, True)
    assert damaged.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert batches_in(reopened, BATCHES[-1][0]) == BATCHES[-1:], "later batches are available"


@pytest.mark.parametrize(("number", "flipped"), BASE_OFFSETS.values(), ids=BASE_OFFSETS)
def test_log_is_truncated_at_a_batch_with_a_wrong_base_offset_after_a_crash(
    disk: Disk, number: int, flipped: int
) -> None:
    log = filled(disk)
    flip_base_offset(disk, log, number, flipped)
    disk.crash()
    assert batches_in(disk.log()) == BATCHES[:number]


def test_missing_flushed_records_are_reported(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    """A file that ends at a batch has no torn batch, and looks as if nothing followed."""
    filled(disk)
    disk.stop()
    disk.file(LAST_SEGMENT).write_bytes(b"")
    assert disk.log().log_end_offset == 0
    line = caplog.records[-1]
    assert line.getMessage() == "log ends before its recovery point; flushed records are missing"
    assert (vars(line)["end"], vars(line)["recovery_point"]) == (0, 15)


def test_batch_of_an_old_format_ends_the_start_with_a_line_that_names_the_file(disk: Disk) -> None:
    filled(disk)
    disk.crash()
    path = disk.file(LAST_SEGMENT)
    data = bytearray(path.read_bytes())
    data[MAGIC_AT] = 0
    path.write_bytes(data)
    with pytest.raises(SluiceError, match=f"^{re.escape(str(path))}: unsupported format of offset 0"):
        disk.log()


def test_segments_after_a_truncation_are_removed(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    log = disk.log()
    for _ in range(30):
        append(log, batch([bytes(100)] * 2))
    second = log.segments[1].base_offset
    disk.directory.flusher.finish()
    flip(disk.file(file_name(second, ".log")), 70)
    disk.crash()
    reopened = disk.log()
    assert reopened.log_end_offset == second
    assert sum(record.message == "removing a segment after the truncation" for record in caplog.records) == (
        len(log.segments) - 2
    )


def test_batches_before_the_recovery_point_are_not_validated(disk: Disk, tmp_path: Path) -> None:
    log = filled(disk)
    disk.directory.checkpoint()
    disk.directory.flusher.finish()
    disk.directory.save_recovery_points()
    disk.directory.flusher.finish()
    path = disk.file(LAST_SEGMENT)
    flip(path, 70)
    append(log, batch(2, producer_id=7, sequence=15))
    with path.open("ab") as file:
        file.write(b"torn")
    disk.directory.unlock()
    reopened = Disk(tmp_path).log()
    assert batches_in(reopened) == [*BATCHES, (15, 16)]


@AFTER_A_STOP_OR_CRASH
@pytest.mark.parametrize("keeps_snapshots", [False, True])
def test_producer_state_is_restored(disk: Disk, restart: Callable[[Disk], None], keeps_snapshots: bool) -> None:
    log = disk.log()
    for number in range(20):
        append(log, batch([bytes(100)] * 2, producer_id=7, sequence=2 * number))
    append(log, batch(producer_id=8, sequence=0, transactional=True))
    restart(disk)
    if not keeps_snapshots:
        for path in disk.file("").glob(f"*{SNAPSHOT}"):
            path.write_bytes(b"\0" + path.read_bytes()[1:-1])
    reopened = disk.log()
    assert reopened.last_stable_offset == 40
    duplicate = reopened.append(batch([bytes(100)] * 2, producer_id=7, sequence=38), NOW_MS, 0)
    assert (duplicate.duplicate, duplicate.base_offset) == (True, 38)
    assert append(reopened, batch(producer_id=7, sequence=40)) == 41
    end_transaction(reopened, COMMIT, 8)
    assert reopened.last_stable_offset == reopened.log_end_offset


def test_producer_state_is_restored_from_the_first_record_without_a_snapshot(disk: Disk) -> None:
    append(disk.log(), batch(producer_id=7, sequence=0))
    disk.crash()
    repeated = disk.log().append(batch(producer_id=7, sequence=0), NOW_MS, 0)
    assert (repeated.duplicate, repeated.base_offset) == (True, 0)


def snapshots(disk: Disk) -> list[int]:
    return sorted(int(path.stem) for path in disk.file("").glob(f"*{SNAPSHOT}"))


def test_checkpoint_replaces_the_snapshot_of_the_previous_checkpoint(log: PartitionLog, disk: Disk) -> None:
    for sequence in range(3):
        append(log, batch(producer_id=7, sequence=sequence))
        disk.directory.checkpoint()
        disk.directory.flusher.finish()
    assert snapshots(disk) == [3]


def test_recovery_removes_snapshots_other_than_the_newest_and_those_at_segment_starts(disk: Disk) -> None:
    log = disk.log()
    for number in range(20):
        append(log, batch([bytes(100)] * 2, producer_id=7, sequence=2 * number))
    disk.stop()
    kept = snapshots(disk)
    assert kept == [*(segment.base_offset for segment in log.segments[1:]), 40]
    shutil.copy(disk.file(file_name(40, SNAPSHOT)), disk.file(file_name(1, SNAPSHOT)))
    disk.log()
    assert snapshots(disk) == kept


@AFTER_A_STOP_OR_CRASH
def test_aborted_transactions_are_restored(log: PartitionLog, disk: Disk, restart: Callable[[Disk], None]) -> None:
    for number in range(8):
        append(log, batch([bytes(100)] * 2, producer_id=7 + number, sequence=0, transactional=True))
        end_transaction(log, ABORT if number % 2 else COMMIT, 7 + number)
    before = log.aborted_transactions(0, log.log_end_offset)
    assert len(before) == 4
    restart(disk)
    reopened = disk.log()
    assert reopened.aborted_transactions(0, reopened.log_end_offset) == before
    disk.stop()
    assert disk.log().aborted_transactions(0, reopened.log_end_offset) == before


INVALID_INDEXES = {
    "an index of partial entries": (".index", b"123", "expected a multiple of 8 bytes, got 3 bytes"),
    "an index with positions beyond the segment": (
        ".index",
        b"\0\0\0\1\0\0\xff\xff",
        "points past the end of the segment",
    ),
    "an index out of order": (".index", bytes([0, 0, 0, 5, 0, 0, 1, 0] * 2), "is not above the previous one"),
    "a time index of partial entries": (".timeindex", b"1" * 13, "got 13 bytes"),
    "a missing index": (".index", None, "missing file"),
    "a missing time index": (".timeindex", None, "missing file"),
}


@pytest.mark.parametrize(("name", "content", "message"), INVALID_INDEXES.values(), ids=INVALID_INDEXES)
def test_invalid_index_is_rebuilt(
    log: PartitionLog, disk: Disk, name: str, content: bytes | None, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(30):
        append(log, batch([bytes(100)]))
    disk.stop()
    before = {kind: disk.file(file_name(0, kind)).read_bytes() for kind in (".index", ".timeindex")}
    path = disk.file(file_name(0, name))
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    reopened = disk.log()
    assert batches_in(reopened, 2)[0] == (2, 2)
    assert reopened.offset_for_timestamp(NOW_MS) is not None
    lines = [record.reason for record in caplog.records if record.message == "rebuilding the index"]  # type: ignore[attr-defined]
    assert len(lines) == 1
    assert file_name(0, name) in lines[0]
    assert message in lines[0]
    disk.stop()
    assert {kind: disk.file(file_name(0, kind)).read_bytes() for kind in before} == before


def test_deleted_records_stay_deleted_after_a_restart(disk: Disk) -> None:
    log = filled(disk)
    log.delete_records_before(4)
    disk.stop()
    reopened = disk.log()
    assert reopened.log_start_offset == 4
    assert batches_in(reopened)[0] == (3, 4)


def test_truncation_is_durable(disk: Disk) -> None:
    log = filled(disk)
    disk.directory.checkpoint()
    assert log.truncate_to(7)
    assert append(log, batch(2)) == 7
    disk.crash()
    reopened = disk.log()
    assert batches_in(reopened) == [(0, 2), (3, 4), (7, 8)]
    assert append(reopened, batch(2, producer_id=7, sequence=5)) == 9, "the producer state forgets truncated batches"


def test_interrupted_segment_replacement_is_finished(log: PartitionLog, disk: Disk) -> None:
    for _ in range(30):
        append(log, batch([bytes(100)]))
    before = batches_in(log)
    disk.stop()
    first = disk.file(file_name(0, ".log"))
    first.rename(first.with_suffix(".log.swap"))
    disk.file(file_name(2, ".log.cleaned")).write_bytes(b"unfinished")
    disk.file(file_name(0, ".log.deleted")).write_bytes(b"old")
    reopened = disk.log()
    assert batches_in(reopened) == before
    assert [path.name for path in disk.file("").glob("*.log.*")] == []


def test_start_after_a_clean_stop_logs_no_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    disk = Disk(tmp_path)
    filled(disk)
    disk.stop()
    disk.log()
    assert caplog.records == []
