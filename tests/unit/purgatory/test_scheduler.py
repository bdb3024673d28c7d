"""The scheduler: repeated and delayed work."""

from sluice.clock import ManualClock
from sluice.purgatory.scheduler import Scheduler
from sluice.purgatory.timer import Timer


def test_repeated_work_runs_at_each_interval_and_delayed_work_once() -> None:
    clock, ran = ManualClock(), []
    scheduler = Scheduler(Timer(clock))
    scheduler.schedule(100, lambda: ran.append(("repeated", clock.monotonic_ms())))
    scheduler.schedule_once(150, lambda: ran.append(("once", clock.monotonic_ms())))
    clock.advance(350)
    start_ms = ran[0][1] - 100
    assert [(name, at_ms - start_ms) for name, at_ms in ran] == [
        ("repeated", 100),
        ("once", 150),
        ("repeated", 200),
        ("repeated", 300),
    ]


def test_failed_repeated_work_runs_again() -> None:
    clock, ran = ManualClock(), []

    def fail() -> None:
        ran.append(True)
        raise ValueError

    Scheduler(Timer(clock)).schedule(100, fail)
    clock.advance(250)
    assert len(ran) == 2
