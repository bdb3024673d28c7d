"""File flushes in a separate thread, and their callbacks in the owner's thread."""

import errno
import os
from pathlib import Path
from threading import get_ident

import pytest
from msgspec.structs import replace

from sluice.broker.log.disk.flusher import Flusher
from tests.support.disk_logs import CONFIG, Disk, append, batch


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT)


def is_open(handle: int) -> bool:
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True


def test_callbacks_run_in_order_in_the_owners_thread(tmp_path: Path) -> None:
    flusher, done = Flusher(), list[int]()
    handles = [opened(tmp_path / f"{number}") for number in range(5)]
    for number, handle in enumerate(handles):
        flusher.flush([handle], lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == [], "callbacks run only in collect or finish"
    flusher.finish()
    assert done == [0, 1, 2, 3, 4]
    assert not any(map(is_open, handles))
    assert not flusher.collect()


def test_flush_messages_flushes_full_segments_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed, of_this_thread, flush = list[int](), get_ident(), os.fdatasync

    def recorded(handle: int) -> None:
        if get_ident() == of_this_thread:
            flushed.append(os.fstat(handle).st_ino)
        flush(handle)

    monkeypatch.setattr(os, "fdatasync", recorded)
    disk = Disk(tmp_path)
    log = disk.log(config=replace(CONFIG, flush_messages=2, segment_bytes=len(batch())))
    append(log, batch())
    assert flushed == []
    append(log, batch())
    assert flushed == [disk.file(f"{offset:020}.log").stat().st_ino for offset in (0, 1)]
    disk.directory.close()


def test_flusher_can_be_used_after_finish(tmp_path: Path) -> None:
    flusher, done = Flusher(), list[str]()
    for name in ("a", "b"):
        flusher.flush([opened(tmp_path / name)], lambda name=name: done.append(name))  # type: ignore[misc]
        flusher.finish()
    assert done == ["a", "b"]


def test_failed_flush_is_logged_and_its_callback_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    flusher, done = Flusher(), list[int]()
    handles = [opened(tmp_path / "a"), opened(tmp_path / "b")]
    flusher.flush(handles, lambda: done.append(1))
    flusher.finish()
    assert done == []
    assert not any(map(is_open, handles))
    assert [record.message for record in caplog.records] == ["cannot flush"]
