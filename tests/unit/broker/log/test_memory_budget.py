"""The memory limit of all logs: which segments are evicted, and when."""

import sys
import weakref

import pytest

from sluice.broker.log.memory_budget import MemoryBudget
from sluice.broker.log.segment_memory import SegmentMemory, allocate


class StubLog:
    """A log with one segment of `size` bytes per time of a last append (ms)."""

    def __init__(self, budget: MemoryBudget, *last_appends_ms: int, size: int = 10) -> None:
        self.budget = budget
        self.segments = list(last_appends_ms)
        self.memory: list[SegmentMemory] = []
        self.deleted_segments = 0
        for last_append_ms in last_appends_ms:
            self.memory.append(budget.allocate(size))
            budget.watch(self, last_append_ms)

    def drop_deleted_segment(self) -> bool:
        is_deleted = self.deleted_segments > 0
        if is_deleted:
            self.deleted_segments -= 1
            self.drop_oldest_segment()
        return is_deleted

    def oldest_append_ms(self) -> int | None:
        return self.segments[0] if self.segments else None

    def drop_oldest_segment(self) -> None:
        del self.segments[0]
        memory = self.memory.pop(0)
        self.budget.release(len(memory.view), memory)


EVICTIONS = {
    "up to the limit: none": (30, [1, 2], 10, [1, 2], 30),
    "a large allocation: several": (40, [1, 2, 3, 4], 25, [4], 35),
    "an allocation above the limit: every one, and it succeeds": (20, [1, 2], 1000, [], 1000),
}


@pytest.mark.parametrize(("limit", "last_appends_ms", "size", "kept", "used_bytes"), EVICTIONS.values(), ids=EVICTIONS)
def test_allocation_evicts_segments_until_it_is_within_the_limit(
    limit: int, last_appends_ms: list[int], size: int, kept: list[int], used_bytes: int
) -> None:
    budget = MemoryBudget(limit)
    log = StubLog(budget, *last_appends_ms)
    budget.allocate(size)
    assert (log.segments, budget.used_bytes) == (kept, used_bytes)


def test_least_recently_appended_segments_of_all_logs_are_evicted_first() -> None:
    budget = MemoryBudget(60)
    first, second = StubLog(budget, 1, 4, 6), StubLog(budget, 2, 3, 5)
    for expected in [([4, 6], [2, 3, 5]), ([4, 6], [3, 5]), ([4, 6], [5]), ([6], [5]), ([6], []), ([], [])]:
        budget.allocate(10)
        assert (first.segments, second.segments) == expected
        assert budget.used_bytes == 60


def test_segments_of_deleted_records_are_evicted_first() -> None:
    budget = MemoryBudget(60)
    older, deleted, other = StubLog(budget, 1, 2), StubLog(budget, 3, 4, 5), StubLog(budget, 6)
    for log, deleted_segments in ((other, 0), (deleted, 1), (deleted, 2)):
        log.deleted_segments = deleted_segments
        budget.records_deleted(log)
    for expected in [([1, 2], [4, 5]), ([1, 2], [5]), ([2], [5]), ([], [5])]:
        budget.allocate(10)
        assert (older.segments, deleted.segments) == expected
    assert other.segments == [6]


def test_later_append_to_a_segment_postpones_its_eviction() -> None:
    budget = MemoryBudget(20)
    busy, idle = StubLog(budget, 1), StubLog(budget, 2)
    busy.segments[0] = 3
    budget.allocate(10)
    assert (busy.segments, idle.segments) == ([3], [])


def test_log_emptied_by_its_owner_is_skipped() -> None:
    budget = MemoryBudget(20)
    emptied, other = StubLog(budget, 1), StubLog(budget, 2)
    emptied.drop_oldest_segment()
    budget.allocate(10)
    budget.allocate(10)
    assert other.segments == []


def test_refilled_log_is_a_candidate_again() -> None:
    budget = MemoryBudget(10)
    log = StubLog(budget, 1)
    for moment_ms in range(2, 5):
        budget.allocate(10)
        assert log.segments == []
        log.segments.append(moment_ms)
        log.memory.append(allocate(10))
        budget.watch(log, moment_ms)


def test_forgotten_log_is_not_evicted() -> None:
    budget = MemoryBudget(20)
    forgotten, other = StubLog(budget, 1), StubLog(budget, 2)
    budget.forget(forgotten)
    budget.allocate(10)
    assert (forgotten.segments, other.segments) == ([1], [])


@pytest.mark.parametrize("now_ms", [0, -1000])
def test_eviction_works_after_the_clock_is_set_back(now_ms: int) -> None:
    budget = MemoryBudget(10)
    log = StubLog(budget, 5000)
    log.segments[0] = now_ms
    budget.allocate(10)
    assert log.segments == []


MAPPED = 128 * 1024  # memory of this size is mapped, and can be reused


def test_new_segment_reuses_the_memory_of_the_evicted_one() -> None:
    budget = MemoryBudget(2 * MAPPED)
    log = StubLog(budget, 1, 2, size=MAPPED)
    log.memory[0].view[5] = 77
    assert budget.allocate(MAPPED).view[5] == 77
    assert budget.used_bytes == 2 * MAPPED


def test_memory_with_a_reader_is_not_reused() -> None:
    budget = MemoryBudget(MAPPED)
    log = StubLog(budget, 1, size=MAPPED)
    part = log.memory[0].view[5:10]
    fresh = budget.allocate(MAPPED)
    fresh.view[:] = b"\xff" * MAPPED
    assert part == bytes(5)


def test_memory_of_another_size_is_not_reused() -> None:
    budget = MemoryBudget(2 * MAPPED)
    StubLog(budget, 1, size=2 * MAPPED)
    assert len(budget.allocate(MAPPED).view) == MAPPED


def test_released_memory_is_not_pooled() -> None:
    budget = MemoryBudget(MAPPED)
    log = StubLog(budget, 1, size=MAPPED)
    log.memory[0].view[5] = 77
    log.drop_oldest_segment()
    assert budget.allocate(MAPPED).view[5] == 0


def test_memory_of_a_deleted_topic_is_reused() -> None:
    budget = MemoryBudget(2 * MAPPED)
    memory = StubLog(budget, 1, size=MAPPED).memory.pop()
    mapping = memory.view.obj
    budget.recycle(MAPPED, memory)
    assert budget.used_bytes == 0
    assert (budget.allocate(MAPPED).view.obj is mapping) == (sys.platform == "linux")
    assert budget.used_bytes == MAPPED
    assert budget.allocate(MAPPED).view.obj is not mapping


def test_used_and_spare_memory_are_within_the_limit() -> None:
    budget = MemoryBudget(4 * MAPPED)
    log = StubLog(budget, 1, 2, 3, 4, size=MAPPED)
    mappings = [weakref.ref(memory.view.obj) for memory in log.memory]
    while log.memory:
        log.segments.pop()
        budget.recycle(MAPPED, log.memory.pop())
    assert sum(mapping() is not None for mapping in mappings) == (4 if sys.platform == "linux" else 0)
    used = budget.allocate(2 * MAPPED)
    assert sum(mapping() is not None for mapping in mappings) == (2 if sys.platform == "linux" else 0)
    assert len(used.view) == 2 * MAPPED


def test_memory_of_a_deleted_topic_with_a_reader_is_retained() -> None:
    budget = MemoryBudget(2 * MAPPED)
    memory = StubLog(budget, 1, size=MAPPED).memory.pop()
    part = memory.view[:5]
    budget.recycle(MAPPED, memory)
    assert budget.retained.size_in_bytes == MAPPED
    budget.allocate(MAPPED).view[:] = b"\xff" * MAPPED
    assert part == bytes(5)
    del part, memory
    assert budget.retained.size_in_bytes == 0
