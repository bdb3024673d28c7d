"""Clocks: monotonic and wall time, and calls that are never early."""

import asyncio
import selectors
from collections.abc import Callable
from functools import partial

import pytest

from sluice.clock import LoopClock, ManualClock, TimerHandle


class TestManualClock:
    def test_clock_stands_still_until_advanced_and_both_times_move_together(self) -> None:
        clock = ManualClock(wall_ms=1_000_000, monotonic_ms=7.0)
        assert (clock.wall_ms(), clock.monotonic_ms()) == (1_000_000, 7.0)
        clock.advance(1_500.5)
        assert (clock.wall_ms(), clock.monotonic_ms()) == (1_001_500, 1_507.5)

    def test_calls_run_at_their_own_moment_by_deadline_then_by_creation(self) -> None:
        clock = ManualClock()
        seen: list[tuple[str, float]] = []

        def note(name: str) -> None:
            seen.append((name, clock.monotonic_ms()))

        for name, deadline_ms in (("c", 20.0), ("a", 10.0), ("d", 20.0), ("late", 31.0), ("b", 10.0)):
            clock.call_at(deadline_ms, partial(note, name))
        clock.advance(30)
        assert seen == [("a", 10.0), ("b", 10.0), ("c", 20.0), ("d", 20.0)]
        clock.advance(1)
        assert seen[4:] == [("late", 31.0)]

    def test_call_scheduled_by_a_call_runs_in_the_same_advance_if_due(self) -> None:
        clock = ManualClock()
        seen: list[float] = []

        def every_10_ms() -> None:
            seen.append(clock.monotonic_ms())
            clock.call_at(clock.monotonic_ms() + 10, every_10_ms)

        clock.call_at(10, every_10_ms)
        clock.advance(35)
        assert seen == [10.0, 20.0, 30.0]
        assert clock.monotonic_ms() == 35.0

    def test_overdue_call_runs_at_the_next_advance_by_0(self) -> None:
        clock = ManualClock(monotonic_ms=100.0)
        seen: list[float] = []
        clock.call_at(50, lambda: seen.append(clock.monotonic_ms()))
        assert seen == []
        clock.advance(0)
        assert seen == [100.0]

    def test_cancelled_call_does_not_run_and_a_second_cancel_is_allowed(self) -> None:
        clock = ManualClock()
        seen: list[str] = []
        handle = clock.call_at(10, lambda: seen.append("cancelled"))
        done = clock.call_at(5, lambda: seen.append("done"))
        handle.cancel()
        handle.cancel()
        clock.advance(10)
        done.cancel()
        assert seen == ["done"]

    def test_call_that_advances_the_clock_does_not_move_it_back(self) -> None:
        clock = ManualClock()
        clock.call_at(10, lambda: clock.advance(100))
        clock.advance(20)
        assert clock.monotonic_ms() == 110.0

    def test_moving_back_is_rejected(self) -> None:
        with pytest.raises(AssertionError, match="does not go back"):
            ManualClock().advance(-1)


class ScriptedLoop:
    """A loop whose time the test sets."""

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now_s

    def call_at(self, when: float, callback: Callable[[], None], /) -> TimerHandle:
        self.calls.append((when, callback))
        return ManualClock().call_at(0, callback)


class JumpingSelector(selectors.DefaultSelector):
    """A selector that returns at once and records the requested timeout."""

    waited_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.waited_s += timeout or 0.0
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """An asyncio loop in virtual time that starts at a fractional time."""

    def __init__(self) -> None:
        self.selector = JumpingSelector()
        super().__init__(self.selector)

    def time(self) -> float:
        return 86_400.0000007 + self.selector.waited_s


class TestLoopClock:
    @pytest.mark.parametrize("ms", [0, 1, 1_001, 290, 4_100, 86_400_123, 10**10 + 7], ids=lambda ms: f"{ms} ms")
    def test_loop_that_jumps_exactly_to_a_deadline_reads_that_deadline(self, ms: int) -> None:
        loop = ScriptedLoop(0.0)
        clock = LoopClock(loop)
        clock.call_at(ms, lambda: None)
        loop.now_s = loop.calls[0][0]
        assert clock.monotonic_ms() == ms

    @pytest.mark.parametrize("deadline_ms", [1.0, 250.001, 86_400_000.0], ids=lambda ms: f"{ms} ms")
    def test_early_call_within_the_loop_resolution_is_not_early_for_the_clock(self, deadline_ms: float) -> None:
        loop = ScriptedLoop(0.0)
        clock = LoopClock(loop)
        clock.call_at(deadline_ms, lambda: None)
        loop.now_s = loop.calls[0][0] - 1e-9
        assert clock.monotonic_ms() >= deadline_ms
        loop.now_s -= 1e-6
        assert clock.monotonic_ms() < deadline_ms

    def test_no_asyncio_call_runs_before_its_deadline(self) -> None:
        loop = JumpingLoop()
        clock = LoopClock(loop)
        late_ms: list[float] = []

        def note(deadline_ms: float) -> None:
            late_ms.append(clock.monotonic_ms() - deadline_ms)

        start_ms = clock.monotonic_ms()
        for i in range(500):
            deadline_ms = start_ms + i * 1.37
            clock.call_at(deadline_ms, partial(note, deadline_ms))
        clock.call_at(start_ms + 1_000, loop.stop)
        loop.run_forever()
        loop.close()
        assert len(late_ms) == 500
        assert min(late_ms) >= 0
        assert max(late_ms) < 0.002, "two roundings to a 1024th"

    def test_cancelled_call_does_not_run(self) -> None:
        loop = JumpingLoop()
        clock = LoopClock(loop)
        seen: list[str] = []
        clock.call_at(clock.monotonic_ms() + 5, lambda: seen.append("cancelled")).cancel()
        clock.call_at(clock.monotonic_ms() + 10, loop.stop)
        loop.run_forever()
        loop.close()
        assert seen == []

    def test_wall_time_is_milliseconds_since_the_epoch(self) -> None:
        wall_ms = LoopClock(ScriptedLoop(0.0)).wall_ms()
        assert isinstance(wall_ms, int)
        assert 1_700_000_000_000 < wall_ms < 4_102_444_800_000, "between 2023 and 2100"
