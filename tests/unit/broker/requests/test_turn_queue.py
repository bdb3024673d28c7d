"""Work in turns."""

import pytest

from sluice.broker.requests.turn_queue import TURN_MS, TurnQueue
from sluice.clock import ManualClock


class Work:
    """Work of `ms` in each of `turns` turns; `log` records when each begins."""

    def __init__(self, queue: TurnQueue, clock: ManualClock, log: list[tuple[str, float]], name: str) -> None:
        self.queue = queue
        self.clock = clock
        self.log = log
        self.name = name

    def start(self, ms: float, turns: int = 1) -> None:
        def turn(left: int) -> None:
            self.log.append((self.name, self.clock.monotonic_ms()))
            self.clock._now_ms += ms
            if left > 1:
                self.queue.add(lambda: turn(left - 1))

        self.queue.add(lambda: turn(turns))


def test_turns_alternate_and_timers_run_between_them() -> None:
    clock = ManualClock()
    queue = TurnQueue(clock)
    log: list[tuple[str, float]] = []
    Work(queue, clock, log, "first").start(TURN_MS, turns=2)
    Work(queue, clock, log, "second").start(TURN_MS, turns=2)
    clock.call_at(1.0, lambda: log.append(("timer", clock.monotonic_ms())))
    clock.advance(100)
    assert log == [("first", 0), ("timer", 2), ("second", 2), ("first", 4), ("second", 6)]


def test_short_work_shares_a_turn() -> None:
    clock = ManualClock()
    queue = TurnQueue(clock)
    log: list[tuple[str, float]] = []
    for number in range(5):
        Work(queue, clock, log, str(number)).start(TURN_MS / 4)
    clock.call_at(0.1, lambda: log.append(("timer", clock.monotonic_ms())))
    clock.advance(100)
    assert [name for name, _ in log] == ["0", "1", "2", "3", "timer", "4"]


def fail() -> None:
    raise ZeroDivisionError


def test_work_after_failed_work_runs() -> None:
    clock = ManualClock()
    queue = TurnQueue(clock)
    done: list[int] = []
    queue.add(fail)
    queue.add(lambda: done.append(1))
    with pytest.raises(ZeroDivisionError):
        clock.advance(0)
    clock.advance(0)
    assert done == [1]
