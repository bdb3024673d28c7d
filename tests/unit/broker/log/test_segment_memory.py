"""Memory of segments: of the size asked for, and handed over only when nobody reads it."""

import ctypes
import mmap
import os
import sys

import pytest

from sluice.broker.log.segment_memory import (
    MAPPED_FROM_BYTES,
    PAGE_BYTES,
    STRETCH_BYTES,
    SegmentMemory,
    allocate,
    reclaim,
    shrink,
)

SEVERAL = 4 * STRETCH_BYTES


@pytest.mark.parametrize("capacity", [1, MAPPED_FROM_BYTES - 1, MAPPED_FROM_BYTES, SEVERAL, SEVERAL + 1])
def test_allocated_memory_is_of_the_size_asked_for_and_writable(capacity: int) -> None:
    view = allocate(capacity).view
    view[capacity - 1] = 7
    assert len(view) == capacity
    assert isinstance(view.obj, mmap.mmap) == (capacity >= MAPPED_FROM_BYTES)


def test_reclaimed_memory_is_the_same() -> None:
    memory = allocate(SEVERAL)
    memory.make_resident(1)
    memory.view[3] = 9
    again = reclaim(memory)
    assert again is not None
    assert (len(again.view), again.view[3], again.resident_bytes) == (SEVERAL, 9, STRETCH_BYTES)


def test_memory_is_not_reclaimed_while_a_part_of_it_is_held() -> None:
    memory = allocate(MAPPED_FROM_BYTES)
    part = memory.view[:5]
    assert reclaim(memory) is None
    assert part == bytes(5)


def test_small_memory_is_not_reclaimed() -> None:
    assert reclaim(allocate(PAGE_BYTES)) is None


@pytest.mark.parametrize(
    ("capacity", "end", "expected"),
    [
        pytest.param(PAGE_BYTES, 10, PAGE_BYTES, id="a small one takes all it may hold"),
        pytest.param(SEVERAL, 0, 0, id="a mapped one takes nothing before it is written to"),
        pytest.param(SEVERAL, 1, STRETCH_BYTES, id="then a stretch"),
        pytest.param(SEVERAL, STRETCH_BYTES, STRETCH_BYTES, id="no further one than is written to"),
        pytest.param(SEVERAL, STRETCH_BYTES + 1, 2 * STRETCH_BYTES, id="or several, for a batch that is as large"),
        pytest.param(MAPPED_FROM_BYTES, 1, MAPPED_FROM_BYTES, id="and never more than it has"),
    ],
)
def test_memory_is_taken_as_it_is_needed(capacity: int, end: int, expected: int) -> None:
    memory = allocate(capacity)
    assert (memory.make_resident(end), memory.resident_bytes) == (expected, expected)


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux which pages there are")
def test_the_system_has_given_what_is_resident_and_no_more() -> None:
    memory = allocate(SEVERAL)
    assert pages_there(memory) == 0
    resident = memory.make_resident(STRETCH_BYTES + 1)
    assert pages_there(memory) == resident // PAGE_BYTES == 2 * STRETCH_BYTES // PAGE_BYTES


def pages_there(memory: SegmentMemory) -> int:
    pages = (ctypes.c_ubyte * (len(memory.view) // PAGE_BYTES))()
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory.view))
    failed = ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(address), ctypes.c_size_t(SEVERAL), pages)
    assert not failed, os.strerror(ctypes.get_errno())
    return sum(page & 1 for page in pages)


def test_where_pages_cannot_be_asked_for_they_come_as_they_are_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.broker.log.segment_memory._POPULATE_WRITE", 9999)  # no kernel knows this
    memory = allocate(SEVERAL)
    memory.view[: memory.make_resident(10)] = b"x" * STRETCH_BYTES
    assert memory.view[STRETCH_BYTES - 1] == ord("x")


@pytest.mark.parametrize(
    ("capacity", "size"),
    [
        pytest.param(1000, 0, id="of little memory nothing"),
        pytest.param(1000, 10, id="of little memory a little"),
        pytest.param(4 * 1024 * 1024, 10, id="of a mapping a little"),
        pytest.param(4 * 1024 * 1024, 3_000_000, id="of a mapping most"),
    ],
)
def test_shrunk_memory_has_what_was_written(capacity: int, size: int) -> None:
    memory = allocate(capacity)
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    memory.view[:size] = content
    smaller = shrink(memory, size)
    assert bytes(smaller.view[:size]) == content
    assert size <= len(smaller.view) <= size + PAGE_BYTES
    assert smaller.resident_bytes <= len(smaller.view)
