"""A full or failing disk: the partition returns KAFKA_STORAGE_ERROR until the disk works again; others continue."""

import errno
import os
from pathlib import Path

import pytest

from sluice.broker.log.log_config import LogConfig
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.log_validator import AppendConfig
from tests.support import skips
from tests.support.disk_logs import NOW_MS, Disk, append, batch, batches_in


class FullDisk:
    """A replacement of `os.pwrite` that accepts `room` more bytes for the files of one folder."""

    def __init__(self, room: int, folder: str) -> None:
        self.room = room
        self.folder = folder
        self.pwrite = os.pwrite

    def __call__(self, handle: int, data: bytes, position: int) -> int:
        # Compare the whole name: the path of a temporary folder may contain "t-0", as "pytest-0" does.
        if Path(f"/proc/self/fd/{handle}").readlink().parent.name != self.folder:
            return self.pwrite(handle, data, position)
        size = min(self.room, len(data))
        if data and not size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= size
        return self.pwrite(handle, bytes(data)[:size], position)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    disk = FullDisk(2**60, "t-0")
    monkeypatch.setattr(os, "pwrite", disk)
    return disk


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason=skips.system("/proc; run it on Linux"))
class TestFullDisk:
    @pytest.mark.parametrize("room", [0, 1, 60, 100])
    def test_append_to_a_full_disk_changes_nothing_and_succeeds_later(
        self, disk: Disk, tmp_path: Path, full: FullDisk, room: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        log, other = disk.log(), disk.log("other-0")
        append(log, batch(2, producer_id=7, sequence=0))
        size = disk.file("00000000000000000000.log").stat().st_size
        full.room = room
        for _ in range(2):
            result = log.append(batch([bytes(200)], producer_id=7, sequence=2), NOW_MS, 0)
            assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (log.log_end_offset, log.size_in_bytes) == (2, size)
        assert disk.file("00000000000000000000.log").stat().st_size == size
        assert batches_in(log) == [(0, 1)], "reads continue"
        assert append(other, batch()) == 0, "other partitions accept appends"
        full.room = 2**60
        assert append(log, batch([bytes(200)], producer_id=7, sequence=2)) == 2
        lines = [record for record in caplog.records if record.message == "partition storage failed"]
        assert [(record.directory, record.reason) for record in lines] == [  # type: ignore[attr-defined]
            (str(tmp_path / "t-0"), "No space left on device")
        ]
        disk.crash()
        assert batches_in(disk.log()) == [(0, 1), (2, 2)]

    def test_segment_creation_is_retried_by_a_later_append(
        self, disk: Disk, full: FullDisk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = disk.log(config=LogConfig(AppendConfig(), segment_bytes=500))
        append(log, batch([bytes(300)]))
        really_open = os.open

        def fail_to_create(path: str, flags: int, mode: int = 0o777) -> int:
            if flags & os.O_CREAT and str(path).endswith(".log"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            return really_open(path, flags, mode)

        with monkeypatch.context() as patched:
            patched.setattr(os, "open", fail_to_create)
            for _ in range(2):
                assert log.append(batch([bytes(300)]), NOW_MS, 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert append(log, batch([bytes(300)])) == 1
        disk.stop()
        assert batches_in(disk.log()) == [(0, 0), (1, 1)]


def test_batch_that_cannot_be_flushed_is_not_stored(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    log = disk.log(config=LogConfig(AppendConfig(), flush_messages=1))
    append(log, batch(2))

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fail)
        assert log.append(batch(), NOW_MS, 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.log_end_offset == 2
    assert append(log, batch()) == 2


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite, disk = os.pwrite, Disk(tmp_path)
    log = disk.log()
    monkeypatch.setattr(os, "pwrite", lambda handle, data, position: pwrite(handle, bytes(data)[:70], position))
    assert append(log, batch([bytes(300)])) == 0
    assert append(log, batch(2)) == 1
    assert batches_in(log) == [(0, 0), (1, 2)]


def test_read_of_a_shortened_file_fails_and_logs_the_position(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    log = disk.log()
    append(log, batch([bytes(300)]))
    append(log, batch([bytes(300)]))
    os.truncate(disk.file("00000000000000000000.log"), 400)
    read = log.read(0, 10**6, 2, True)
    assert (read.error_code, read.parts, read.size) == (ErrorCode.KAFKA_STORAGE_ERROR, [], 0)
    assert log.size_available(1, 10**6, 2, True) == 0
    assert log.bytes_between(1, 2, 1000) == 1000, "a delayed fetch is answered immediately"
    (line,) = [record for record in caplog.records if record.message == "partition storage failed"]
    assert "00000000000000000000.log: no batch at byte" in line.reason  # type: ignore[attr-defined]
