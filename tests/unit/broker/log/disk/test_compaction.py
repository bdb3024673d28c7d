"""A compacted log on disk: its files, and its state after restarts, crashes and disk errors."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.broker.log.cleaner.cleaner import MOST_WAITS, LogCleaning
from sluice.broker.log.log_config import LogConfig
from sluice.broker.log.partition_log import PartitionLog
from sluice.protocol.records.build import ABORT, build_batch
from sluice.protocol.records.log_validator import AppendConfig
from sluice.protocol.records.record import Record
from tests.support.disk_logs import NOW_MS, Disk, append, batches_in, end_transaction

# Five batches per segment.
CONFIG = LogConfig(AppendConfig(compacted=True), segment_bytes=400, index_interval_bytes=100)
KEYS = 7
BATCHES = 60
# The last record of each key in the inactive segments, and the active segment.
REMAINING = [*range(48, 55), *range(55, 60)]


def keyed(key: int, producer_id: int = -1, sequence: int = -1, **fields: bool) -> memoryview:
    numbers = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence} if producer_id >= 0 else {}
    return memoryview(bytearray(build_batch([Record(0, NOW_MS, b"key-%d" % key, b"v")], **numbers, **fields)))  # type: ignore[arg-type]


def filled(disk: Disk) -> PartitionLog:
    log = disk.log(config=CONFIG)
    for number in range(BATCHES):
        append(log, keyed(number % KEYS))
    assert log.segments[-1].base_offset == 55
    return log


def cleaning_of(log: PartitionLog) -> LogCleaning:
    return LogCleaning(log, log.first_dirty_offset, log.segments[-1].base_offset, NOW_MS, 1000)


def clean(disk: Disk, log: PartitionLog) -> None:
    cleaning = cleaning_of(log)
    for _ in cleaning.steps():
        if cleaning.is_waiting:
            disk.directory.flusher.finish()
    log.first_dirty_offset = cleaning.end_offset
    disk.directory.save_cleaned()
    disk.directory.flusher.finish()


def offsets(log: PartitionLog) -> list[int]:
    return [first for first, _ in batches_in(log)]


def files(disk: Disk) -> set[str]:
    return {path.name for path in (disk.path / "t-0").iterdir() if path.suffix == ".log"}


def test_cleaned_log_has_only_the_files_of_its_segments(disk: Disk, tmp_path: Path) -> None:
    log = filled(disk)
    clean(disk, log)
    assert offsets(log) == REMAINING
    assert files(disk) == {f"{segment.base_offset:020}.log" for segment in log.segments}
    assert log.size_in_bytes == sum(path.stat().st_size for path in (tmp_path / "t-0").glob("*.log"))
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n1\nt 0 55\n"
    disk.now_ms += CONFIG.file_delete_delay_ms
    disk.directory.tick()
    assert not [path for path in (tmp_path / "t-0").iterdir() if path.name.endswith((".deleted", ".cleaned", ".swap"))]


@pytest.mark.parametrize("restart", [Disk.stop, Disk.crash])
def test_cleaned_log_is_unchanged_after_a_restart(disk: Disk, restart: Callable[[Disk], None]) -> None:
    clean(disk, filled(disk))
    restart(disk)
    log = disk.log(config=CONFIG)
    assert offsets(log) == REMAINING
    assert log.first_dirty_offset == 55
    assert (log.log_start_offset, log.log_end_offset) == (0, 60)
    for offset in range(60):
        assert batches_in(log, offset)[0][0] == next(kept for kept in REMAINING if kept >= offset)
    for number in range(60, 80):
        append(log, keyed(number % KEYS))
    clean(disk, log)
    assert offsets(log) == [*range(68, 75), *range(75, 80)]


def test_crash_at_any_step_of_a_replacement_loses_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the directory before each rename is the state that a crash would leave."""
    disk = Disk(tmp_path / "disk")
    log = filled(disk)
    before, rename = offsets(log), os.replace
    copies: list[Path] = []

    def copy_and_rename(source: str, target: str) -> None:
        if "/t-0/" in source and not source.endswith(".tmp"):
            copy = tmp_path / f"copy-{len(copies)}"
            shutil.copytree(disk.path / "t-0", copy / "t-0")
            copies.append(copy)
        rename(source, target)

    monkeypatch.setattr(os, "replace", copy_and_rename)
    clean(disk, log)
    monkeypatch.undo()
    assert len(copies) > 20
    found = []
    for copy in copies:
        copied = Disk(copy)
        reopened = copied.log(config=CONFIG)
        found.append(offsets(reopened))
        assert set(REMAINING) <= set(found[-1]) <= set(before)
        assert (reopened.log_start_offset, reopened.log_end_offset) == (0, 60)
        copied.directory.unlock()
    assert found[0] == before
    assert found[-1] == REMAINING
    assert [len(kept) for kept in found] == sorted((len(kept) for kept in found), reverse=True)


def test_compaction_keeps_aborted_transactions_with_a_remaining_marker(disk: Disk) -> None:
    log = disk.log(config=CONFIG)
    for sequence in range(3):
        append(log, keyed(sequence, producer_id=7, sequence=sequence, transactional=True))
    end_transaction(log, ABORT, 7)
    for number in range(20):
        append(log, keyed(number % KEYS))
    clean(disk, log)
    before = log.aborted_transactions(0, log.log_end_offset)
    assert [(txn.first_offset, txn.last_offset) for txn in before] == [(0, 3)]
    clean(disk, log)
    disk.stop()
    log = disk.log(config=CONFIG)
    # The records are removed; the producer's last batch remains, empty, with the marker and the sequence number.
    assert log.aborted_transactions(0, log.log_end_offset) == before
    assert append(log, keyed(9, producer_id=7, sequence=3, transactional=True)) == 24


def test_cleaning_is_abandoned_without_files_if_the_flush_does_not_finish(disk: Disk, tmp_path: Path) -> None:
    log = filled(disk)
    cleaning = cleaning_of(log)
    waits = (cleaning.is_waiting for _ in cleaning.steps())
    with pytest.raises(OSError, match=f"not flushed after {MOST_WAITS} checks"):
        sum(waits)  # finished flushes are never collected
    assert offsets(log) == list(range(60))
    assert not list((tmp_path / "t-0").glob("*.cleaned*"))
    disk.directory.flusher.finish()


def test_partition_deleted_during_a_cleaning_leaves_no_file(disk: Disk, tmp_path: Path) -> None:
    log = filled(disk)
    steps = cleaning_of(log).steps()
    for _ in range(BATCHES * 2 + 20):
        next(steps)
    assert list((tmp_path / "t-0").glob("*.cleaned*"))
    log.close()
    disk.directory.tick()
    for _ in steps:
        disk.directory.flusher.finish()
    disk.now_ms += CONFIG.file_delete_delay_ms
    disk.directory.tick()
    disk.directory.flusher.finish()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
