"""The timer: times and order of tasks, and calls of the clock."""

import logging
from collections.abc import Callable
from functools import partial

import pytest

from sluice.clock import ManualClock, TimerHandle
from sluice.purgatory.timer import LATENESS_BOUNDS_MS, Timer
from sluice.purgatory.wheel import TimerTask


class Call(TimerTask):
    """A task that calls a function."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[], object]) -> None:
        self._before = None
        self.function = function

    def run(self) -> None:
        self.function()


class CountingClock(ManualClock):
    """A clock that records the requested moments and its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.armed_ms: list[float] = []
        self.calls = 0

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> TimerHandle:
        def counted() -> None:
            self.calls += 1
            callback()

        self.armed_ms.append(deadline_ms)
        return super().call_at(deadline_ms, counted)


class HastyClock(ManualClock):
    """A clock that calls half a millisecond early."""

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> TimerHandle:
        early_ms = 0.5 if deadline_ms - self.monotonic_ms() > 0.5 else 0.0
        return super().call_at(deadline_ms - early_ms, callback)


class Noted:
    """A timer with its clock and a list of executed tasks."""

    def __init__(self, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock()
        self.timer = Timer(self.clock)
        self.ran: list[tuple[str, float]] = []

    def add(self, name: str, delay_ms: float) -> Call:
        task = Call(lambda: self.ran.append((name, self.clock.monotonic_ms())))
        self.timer.add(task, delay_ms)
        return task

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.ran]


def counting() -> tuple[CountingClock, Noted]:
    clock = CountingClock()
    return clock, Noted(clock)


@pytest.fixture
def noted() -> Noted:
    return Noted()


DAY_MS = 86_400_000


@pytest.mark.parametrize("delay_ms", [1, 100, 256, 30_000, 70_000, 45 * DAY_MS], ids=lambda ms: f"{ms} ms")
def test_task_runs_exactly_at_its_deadline(noted: Noted, delay_ms: int) -> None:
    noted.add("it", delay_ms)
    noted.clock.advance(50 * DAY_MS)
    assert noted.ran == [("it", delay_ms)]


def test_fractional_deadline_is_rounded_up_to_the_next_millisecond() -> None:
    noted = Noted(ManualClock(monotonic_ms=0.25))
    noted.add("it", 10)
    noted.clock.advance(1_000)
    assert noted.ran == [("it", 11.0)]


def test_tasks_run_by_deadline_then_by_creation(noted: Noted) -> None:
    for name, delay_ms in (("c", 400), ("a", 7), ("d", 400), ("b", 7.0)):
        noted.add(name, delay_ms)
    noted.clock.advance(400)
    assert noted.ran == [("a", 7.0), ("b", 7.0), ("c", 400.0), ("d", 400.0)]


@pytest.mark.parametrize("delay_ms", [0, -1, -1_000.5], ids=["now", "just past", "long past"])
def test_overdue_task_runs_at_the_next_advance_not_within_add(delay_ms: float) -> None:
    noted = Noted(ManualClock(monotonic_ms=5_000.0))
    noted.add("it", delay_ms)
    assert noted.names == []
    noted.clock.advance(0)
    assert noted.names == ["it"]


def test_cancelled_task_does_not_run_even_if_cancelled_by_a_task_due_with_it(noted: Noted) -> None:
    early = noted.add("cancelled before", 10)
    noted.timer.add(Call(lambda: noted.timer.cancel(late)), 10)
    late = noted.add("cancelled by its neighbour", 10)
    noted.add("kept", 10)
    noted.timer.cancel(early)
    noted.clock.advance(10)
    assert noted.names == ["kept"]


def test_task_that_re_adds_itself_without_delay_does_not_starve_others(noted: Noted) -> None:
    runs = 0

    def again() -> None:
        nonlocal runs
        runs += 1
        if runs < 3:
            noted.timer.add(task, 0)

    task = Call(again)
    noted.timer.add(task, 10)
    noted.add("the rest", 10)
    noted.timer.add(Call(lambda: noted.ran.append((f"after {runs} runs", 0.0))), 10)
    noted.clock.advance(10)
    assert noted.names == ["the rest", "after 1 runs"]
    assert runs == 3


def test_tasks_added_by_a_task_run_at_their_own_deadlines(noted: Noted) -> None:
    noted.timer.add(Call(lambda: (noted.add("far", 1_000), noted.add("near", 5))), 10)
    noted.clock.advance(2_000)
    assert noted.ran == [("near", 15.0), ("far", 1_010.0)]


def test_clock_is_armed_again_only_for_an_earlier_deadline() -> None:
    clock, noted = counting()
    for delay_ms in (500, 600, 500, 40, 90, 40, 39.5):
        noted.add("it", delay_ms)
    assert clock.armed_ms == [500, 40]


def test_deadline_replaced_by_an_earlier_one_is_not_called_twice() -> None:
    clock, noted = counting()
    for delay_ms in (200, 100, 50):
        noted.add("it", delay_ms)
    clock.advance(1_000)
    assert (noted.names, clock.calls) == (["it"] * 3, 3)


def test_tasks_added_by_running_tasks_arm_the_clock_once() -> None:
    clock, noted = counting()
    for delay_ms in (90, 60, 30):
        noted.timer.add(Call(partial(noted.add, "it", delay_ms)), 10)
    clock.advance(10)
    assert clock.armed_ms == [10, 40]


def test_clock_calls_once_for_all_tasks_of_one_millisecond() -> None:
    clock, noted = counting()
    for _ in range(100):
        noted.add("it", 300)
    clock.advance(1_000)
    assert (clock.calls, len(noted.ran)) == (1, 100)
    assert clock.armed_ms == [300], "no pending task, so the clock is not armed"


def test_cancelled_task_causes_at_most_one_idle_call() -> None:
    clock, noted = counting()
    for _ in range(100):
        noted.timer.cancel(noted.add("it", 300))
    clock.advance(10_000)
    assert (clock.calls, noted.ran) == (1, [])
    noted.add("later", 20)
    clock.advance(20)
    assert noted.names == ["later"]


def test_early_clock_call_runs_no_task_early() -> None:
    noted = Noted(HastyClock())
    noted.add("it", 100)
    noted.clock.advance(200)
    assert noted.ran == [("it", 100.0)]


def test_failed_task_is_logged_and_others_run(noted: Noted, caplog: pytest.LogCaptureFixture) -> None:
    noted.add("before", 10)
    noted.timer.add(Call(lambda: 1 // 0), 10)
    noted.add("after", 10)
    noted.add("later", 20)
    noted.clock.advance(20)
    assert noted.names == ["before", "after", "later"]
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("sluice.purgatory", logging.ERROR)
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_after_an_interrupt_the_remaining_tasks_still_run(noted: Noted) -> None:

    def interrupt() -> None:
        raise KeyboardInterrupt

    noted.timer.add(Call(interrupt), 10)
    noted.add("the rest", 10)
    with pytest.raises(KeyboardInterrupt):
        noted.clock.advance(10)
    assert noted.names == []
    noted.clock.advance(0)
    assert noted.names == ["the rest"]


def test_after_close_nothing_runs_and_pending_tasks_can_be_cancelled() -> None:
    clock, noted = counting()
    waiting = noted.add("waiting", 10)
    noted.timer.close()
    noted.timer.close()
    noted.add("added later", 5)
    noted.timer.cancel(waiting)
    clock.advance(1_000)
    assert (noted.ran, clock.calls, clock.armed_ms) == ([], 0, [10])


def test_task_that_closes_the_timer_is_the_last() -> None:
    clock, noted = counting()
    noted.timer.add(Call(noted.timer.close), 10)
    noted.add("due with it", 10)
    noted.add("due later", 20)
    clock.advance(1_000)
    assert noted.ran == []
    assert clock.armed_ms == [10]


@pytest.mark.parametrize(
    ("late_ms", "bucket"),
    [(0.5, 0), (1.0, 0), (1.5, 1), (5.0, 2), (7.0, 3), (999.0, 6), (60_000.0, 7)],
    ids=lambda value: str(value),
)
def test_lateness_is_counted_under_its_smallest_upper_bound(noted: Noted, late_ms: float, bucket: int) -> None:
    noted.timer.add(Call(lambda: noted.clock.advance(late_ms)), 10)
    noted.add("held up", 10)
    noted.clock.advance(10)
    expected = [0] * (len(LATENESS_BOUNDS_MS) + 1)
    expected[0] += 1  # the task that delayed the other was on time
    expected[bucket] += 1
    assert noted.timer.lateness_counts == expected
    assert noted.timer.lateness_sum_ms == late_ms
