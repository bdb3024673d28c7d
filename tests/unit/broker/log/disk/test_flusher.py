"""What is flushed by another thread, and when that is known."""

import errno
import os
from pathlib import Path

import pytest

from sluice.broker.log.disk.flusher import Flusher


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT)


def is_open(handle: int) -> bool:
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True


def test_what_is_to_be_done_then_is_done_by_the_owners_thread_in_order(tmp_path: Path) -> None:
    flusher, done = Flusher(), list[int]()
    handles = [opened(tmp_path / f"{number}") for number in range(5)]
    for number, handle in enumerate(handles):
        flusher.flush([handle], lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == [], "nothing is done before it is collected"
    flusher.finish()
    assert done == [0, 1, 2, 3, 4]
    assert not any(map(is_open, handles))
    assert not flusher.collect()


def test_it_goes_on_after_it_has_finished(tmp_path: Path) -> None:
    flusher, done = Flusher(), list[str]()
    for name in ("a", "b"):
        flusher.flush([opened(tmp_path / name)], lambda name=name: done.append(name))  # type: ignore[misc]
        flusher.finish()
    assert done == ["a", "b"]


def test_a_disk_that_fails_is_told_and_nothing_is_safe(
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
