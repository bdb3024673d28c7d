"""Memory of segments: of the size asked for, and handed over only when nobody reads it."""

import mmap

import pytest

from sluice.broker.log.segment_memory import (
    HUGE_PAGE_BYTES,
    MAPPED_FROM_BYTES,
    PAGE_BYTES,
    allocate,
    reclaim,
    resident_bytes,
    shrink,
)


@pytest.mark.parametrize(
    "capacity", [1, MAPPED_FROM_BYTES - 1, MAPPED_FROM_BYTES, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES + 1]
)
def test_allocated_memory_is_of_the_size_asked_for_and_writable(capacity: int) -> None:
    memory = allocate(capacity)
    memory[capacity - 1] = 7
    assert len(memory) == capacity
    assert isinstance(memory.obj, mmap.mmap) == (capacity >= MAPPED_FROM_BYTES)


def test_reclaimed_memory_is_the_same() -> None:
    memory = allocate(MAPPED_FROM_BYTES)
    memory[3] = 9
    again = reclaim(memory)
    assert again is not None
    assert (len(again), again[3]) == (MAPPED_FROM_BYTES, 9)


def test_memory_is_not_reclaimed_while_a_part_of_it_is_held() -> None:
    memory = allocate(MAPPED_FROM_BYTES)
    part = memory[:5]
    assert reclaim(memory) is None
    assert part == bytes(5)


def test_small_memory_is_not_reclaimed() -> None:
    assert reclaim(allocate(PAGE_BYTES)) is None


@pytest.mark.parametrize(
    ("capacity", "written", "expected"),
    [
        pytest.param(4096, 10, 4096, id="a small one takes all it may hold"),
        pytest.param(MAPPED_FROM_BYTES, PAGE_BYTES + 1, 2 * PAGE_BYTES, id="a mapped one takes whole pages"),
        pytest.param(MAPPED_FROM_BYTES + 1, MAPPED_FROM_BYTES + 1, MAPPED_FROM_BYTES + 1, id="no more than it has"),
        pytest.param(2 * HUGE_PAGE_BYTES, 10, 2 * HUGE_PAGE_BYTES, id="one of huge pages takes them all"),
    ],
)
def test_resident_bytes(capacity: int, written: int, expected: int) -> None:
    assert resident_bytes(capacity, written) == expected


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
    memory[:size] = content
    smaller = shrink(memory, size)
    assert bytes(smaller[:size]) == content
    assert size <= len(smaller) <= size + PAGE_BYTES
