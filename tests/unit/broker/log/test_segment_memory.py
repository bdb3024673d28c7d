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
    SpareMemory,
    allocate,
    reclaim,
    shrink,
)
from tests.support import skips

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


def test_view_of_reclaimed_memory_is_empty() -> None:
    memory = allocate(MAPPED_FROM_BYTES)
    assert reclaim(memory) is not None
    assert len(memory.view) == 0


linux_only = pytest.mark.skipif(sys.platform != "linux", reason=skips.system("Linux"))


def spare_of(*sizes: int) -> SpareMemory:
    spare = SpareMemory()
    for size in sizes:
        memory = allocate(size)
        memory.make_resident(size)
        memory.view[:] = b"x" * size
        assert spare.add(memory)
    return spare


@linux_only
def test_spare_memory_is_taken_once_for_its_size() -> None:
    spare = spare_of(MAPPED_FROM_BYTES, SEVERAL)
    assert spare.take(SEVERAL - 1) is None
    memory = spare.take(SEVERAL)
    assert memory is not None
    assert (len(memory.view), memory.resident_bytes) == (SEVERAL, SEVERAL)
    assert spare.size_in_bytes == MAPPED_FROM_BYTES
    assert spare.take(SEVERAL) is None


@linux_only
def test_spare_memory_is_writable_after_the_system_took_its_pages() -> None:
    memory = spare_of(SEVERAL).take(SEVERAL)
    assert memory is not None
    mapping = memory.view.obj
    assert isinstance(mapping, mmap.mmap)
    mapping.madvise(mmap.MADV_DONTNEED)
    assert resident_pages(memory) == 0
    memory.view[:] = b"y" * SEVERAL
    assert bytes(memory.view[-1:]) == b"y"


@linux_only
def test_memory_above_the_limit_is_not_spare() -> None:
    spare = spare_of(MAPPED_FROM_BYTES, SEVERAL, SEVERAL)
    spare.limit(2 * SEVERAL)
    assert spare.size_in_bytes <= 2 * SEVERAL
    spare.limit(0)
    assert spare.size_in_bytes == 0
    spare.limit(-1)


@pytest.mark.parametrize("capacity", [PAGE_BYTES, MAPPED_FROM_BYTES])
def test_small_memory_and_memory_with_a_reader_are_not_spare(capacity: int) -> None:
    spare, memory = SpareMemory(), allocate(capacity)
    part = memory.view[:5]
    assert not spare.add(memory)
    assert part == bytes(5)
    assert len(memory.view) == capacity
    assert spare.size_in_bytes == 0


@linux_only
def test_memory_is_not_spare_if_the_system_cannot_take_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "MADV_FREE", 9999)  # an advice that no kernel supports
    spare, memory = SpareMemory(), allocate(SEVERAL)
    memory.make_resident(1)
    assert not spare.add(memory)
    assert len(memory.view) == SEVERAL


RESIDENT = {
    "small memory is resident as a whole": (PAGE_BYTES, 10, PAGE_BYTES),
    "mapped memory is not resident before the first write": (SEVERAL, 0, 0),
    "the first byte populates one stretch": (SEVERAL, 1, STRETCH_BYTES),
    "a full stretch populates no further one": (SEVERAL, STRETCH_BYTES, STRETCH_BYTES),
    "a large batch populates several stretches": (SEVERAL, STRETCH_BYTES + 1, 2 * STRETCH_BYTES),
    "population ends at the capacity": (MAPPED_FROM_BYTES, 1, MAPPED_FROM_BYTES),
}


@pytest.mark.parametrize(("capacity", "end", "expected"), RESIDENT.values(), ids=RESIDENT)
def test_memory_becomes_resident_on_demand(capacity: int, end: int, expected: int) -> None:
    memory = allocate(capacity)
    assert (memory.make_resident(end), memory.resident_bytes) == (expected, expected)


@pytest.mark.skipif(sys.platform != "linux", reason=skips.system("mincore; run it on Linux"))
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


SHRUNK = {
    "small memory, nothing written": (1000, 0),
    "small memory, a few bytes written": (1000, 10),
    "mapped memory, a few bytes written": (4 * 1024 * 1024, 10),
    "mapped memory, mostly written": (4 * 1024 * 1024, 3_000_000),
}


@pytest.mark.parametrize(("capacity", "size"), SHRUNK.values(), ids=SHRUNK)
def test_shrunk_memory_keeps_the_written_bytes(capacity: int, size: int) -> None:
    memory = allocate(capacity)
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    memory.view[:size] = content
    smaller = shrink(memory, size)
    assert bytes(smaller.view[:size]) == content
    assert size <= len(smaller.view) <= size + PAGE_BYTES
    assert smaller.resident_bytes <= len(smaller.view)
