"""Memory of segments: allocation, reuse without readers, population and shrinking."""

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
def test_allocated_memory_has_the_requested_size_and_is_writable(capacity: int) -> None:
    view = allocate(capacity).view
    view[capacity - 1] = 7
    assert len(view) == capacity
    assert isinstance(view.obj, mmap.mmap) == (capacity >= MAPPED_FROM_BYTES)


def test_reclaimed_memory_keeps_its_content_and_resident_bytes() -> None:
    memory = allocate(SEVERAL)
    memory.make_resident(1)
    memory.view[3] = 9
    reclaimed = reclaim(memory)
    assert reclaimed is not None
    assert (len(reclaimed.view), reclaimed.view[3], reclaimed.resident_bytes) == (SEVERAL, 9, STRETCH_BYTES)


def test_memory_with_a_reader_is_not_reclaimed() -> None:
    memory = allocate(MAPPED_FROM_BYTES)
    part = memory.view[:5]
    assert reclaim(memory) is None
    assert part == bytes(5)


def test_small_memory_is_not_reclaimed() -> None:
    assert reclaim(allocate(PAGE_BYTES)) is None


@pytest.mark.parametrize(
    ("capacity", "end", "expected"),
    [
        pytest.param(PAGE_BYTES, 10, PAGE_BYTES, id="small memory is resident as a whole"),
        pytest.param(SEVERAL, 0, 0, id="mapped memory is not resident before the first write"),
        pytest.param(SEVERAL, 1, STRETCH_BYTES, id="the first byte populates one stretch"),
        pytest.param(SEVERAL, STRETCH_BYTES, STRETCH_BYTES, id="a full stretch populates no further one"),
        pytest.param(SEVERAL, STRETCH_BYTES + 1, 2 * STRETCH_BYTES, id="a large batch populates several stretches"),
        pytest.param(MAPPED_FROM_BYTES, 1, MAPPED_FROM_BYTES, id="population ends at the capacity"),
    ],
)
def test_memory_becomes_resident_on_demand(capacity: int, end: int, expected: int) -> None:
    memory = allocate(capacity)
    assert (memory.make_resident(end), memory.resident_bytes) == (expected, expected)


@pytest.mark.skipif(sys.platform != "linux", reason="calls mincore, which only Linux has")
def test_resident_bytes_match_the_resident_pages() -> None:
    memory = allocate(SEVERAL)
    assert resident_pages(memory) == 0
    resident = memory.make_resident(STRETCH_BYTES + 1)
    assert resident_pages(memory) == resident // PAGE_BYTES == 2 * STRETCH_BYTES // PAGE_BYTES


def resident_pages(memory: SegmentMemory) -> int:
    pages = (ctypes.c_ubyte * (len(memory.view) // PAGE_BYTES))()
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory.view))
    failed = ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(address), ctypes.c_size_t(SEVERAL), pages)
    assert not failed, os.strerror(ctypes.get_errno())
    return sum(page & 1 for page in pages)


def test_memory_is_writable_if_the_kernel_cannot_populate_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.broker.log.segment_memory._POPULATE_WRITE", 9999)  # an advice that no kernel supports
    memory = allocate(SEVERAL)
    memory.view[: memory.make_resident(10)] = b"x" * STRETCH_BYTES
    assert memory.view[STRETCH_BYTES - 1] == ord("x")


@pytest.mark.parametrize(
    ("capacity", "size"),
    [
        pytest.param(1000, 0, id="small memory, nothing written"),
        pytest.param(1000, 10, id="small memory, a few bytes written"),
        pytest.param(4 * 1024 * 1024, 10, id="mapped memory, a few bytes written"),
        pytest.param(4 * 1024 * 1024, 3_000_000, id="mapped memory, mostly written"),
    ],
)
def test_shrunk_memory_keeps_the_written_bytes(capacity: int, size: int) -> None:
    memory = allocate(capacity)
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    memory.view[:size] = content
    smaller = shrink(memory, size)
    assert bytes(smaller.view[:size]) == content
    assert size <= len(smaller.view) <= size + PAGE_BYTES
    assert smaller.resident_bytes <= len(smaller.view)
