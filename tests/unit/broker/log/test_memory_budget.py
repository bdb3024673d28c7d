"""The bound on the memory of all logs: who has to let go, and when."""

import pytest

from sluice.broker.log.memory_budget import MemoryBudget
from sluice.broker.log.segment_memory import SegmentMemory, allocate


class StubLog:
    """A log whose segments are given by their last appends (ms); each has `size` bytes."""

    def __init__(self, budget: MemoryBudget, *last_appends_ms: int, size: int = 10) -> None:
        self.budget = budget
        self.segments = list(last_appends_ms)
        self.memory: list[SegmentMemory] = []
        for last_append_ms in last_appends_ms:
            self.memory.append(budget.allocate(size))
            budget.watch(self, last_append_ms)

    def oldest_append_ms(self) -> int | None:
        return self.segments[0] if self.segments else None

    def drop_oldest_segment(self) -> None:
        del self.segments[0]
        memory = self.memory.pop(0)
        self.budget.release(len(memory.view), memory)


def test_under_the_limit_nobody_lets_go() -> None:
    budget = MemoryBudget(30)
    log = StubLog(budget, 1, 2)
    budget.allocate(10)
    assert budget.used_bytes == 30
    assert log.segments == [1, 2]


def test_the_least_recently_appended_go_first_over_all_logs() -> None:
    budget = MemoryBudget(60)
    first, second = StubLog(budget, 1, 4, 6), StubLog(budget, 2, 3, 5)
    for expected in [([4, 6], [2, 3, 5]), ([4, 6], [3, 5]), ([4, 6], [5]), ([6], [5]), ([6], []), ([], [])]:
        budget.allocate(10)
        assert (first.segments, second.segments) == expected
        assert budget.used_bytes == 60


def test_a_segment_appended_to_since_is_no_longer_the_oldest() -> None:
    budget = MemoryBudget(20)
    busy, idle = StubLog(budget, 1), StubLog(budget, 2)
    busy.segments[0] = 3
    budget.allocate(10)
    assert (busy.segments, idle.segments) == ([3], [])


def test_as_many_go_as_it_takes() -> None:
    budget = MemoryBudget(40)
    log = StubLog(budget, 1, 2, 3, 4)
    budget.allocate(25)
    assert log.segments == [4]
    assert budget.used_bytes == 35


def test_what_is_larger_than_the_limit_stands_alone() -> None:
    budget = MemoryBudget(20)
    log = StubLog(budget, 1, 2)
    budget.allocate(1000)
    assert log.segments == []
    assert budget.used_bytes == 1000


def test_a_log_that_was_emptied_otherwise_is_passed_over() -> None:
    budget = MemoryBudget(20)
    emptied, other = StubLog(budget, 1), StubLog(budget, 2)
    emptied.drop_oldest_segment()
    budget.allocate(10)
    budget.allocate(10)
    assert other.segments == []


def test_a_log_that_was_emptied_and_filled_again_is_asked_again() -> None:
    budget = MemoryBudget(10)
    log = StubLog(budget, 1)
    for moment_ms in range(2, 5):
        budget.allocate(10)
        assert log.segments == []
        log.segments.append(moment_ms)
        log.memory.append(allocate(10))
        budget.watch(log, moment_ms)


def test_a_forgotten_log_is_not_asked() -> None:
    budget = MemoryBudget(20)
    deleted, other = StubLog(budget, 1), StubLog(budget, 2)
    budget.forget(deleted)
    budget.allocate(10)
    assert (deleted.segments, other.segments) == ([1], [])


@pytest.mark.parametrize("now_ms", [0, -1000])
def test_a_clock_set_back_does_not_keep_a_log_from_letting_go(now_ms: int) -> None:
    budget = MemoryBudget(10)
    log = StubLog(budget, 5000)
    log.segments[0] = now_ms
    budget.allocate(10)
    assert log.segments == []


MAPPED = 128 * 1024  # from here on memory is mapped, and can be handed over


def test_a_segment_that_goes_hands_its_memory_over() -> None:
    budget = MemoryBudget(2 * MAPPED)
    log = StubLog(budget, 1, 2, size=MAPPED)
    log.memory[0].view[5] = 77
    assert budget.allocate(MAPPED).view[5] == 77
    assert budget.used_bytes == 2 * MAPPED


def test_memory_that_is_still_read_is_not_handed_over() -> None:
    budget = MemoryBudget(MAPPED)
    log = StubLog(budget, 1, size=MAPPED)
    part = log.memory[0].view[5:10]
    fresh = budget.allocate(MAPPED)
    fresh.view[:] = b"\xff" * MAPPED
    assert part == bytes(5)


def test_memory_of_another_size_is_not_handed_over() -> None:
    budget = MemoryBudget(2 * MAPPED)
    StubLog(budget, 1, size=2 * MAPPED)
    assert len(budget.allocate(MAPPED).view) == MAPPED


def test_nothing_is_kept_for_later() -> None:
    budget = MemoryBudget(MAPPED)
    log = StubLog(budget, 1, size=MAPPED)
    log.memory[0].view[5] = 77
    log.drop_oldest_segment()
    assert budget.allocate(MAPPED).view[5] == 0
