"""Background work of a broker: repeated at an interval, or run once after a delay."""

from collections.abc import Callable

from .operation import DelayedAction
from .purgatory import DelayedOperationPurgatory
from .timer import Timer


class Scheduler(DelayedOperationPurgatory):
    """The purgatory of background work. Closing its timer stops it."""

    __slots__ = ()

    def __init__(self, timer: Timer) -> None:
        super().__init__("Scheduler", timer)

    def schedule(self, interval_ms: float, action: Callable[[], object], first_ms: float | None = None) -> None:
        """Run an action repeatedly, the first time in `first_ms`, or in `interval_ms` without it."""
        self.delay(_Repeated(interval_ms if first_ms is None else first_ms, interval_ms, action, self))

    def schedule_once(self, delay_ms: float, action: Callable[[], object]) -> None:
        self.delay(DelayedAction(delay_ms, action))


class _Repeated(DelayedAction):
    __slots__ = ("_interval_ms", "_scheduler")

    def __init__(self, delay_ms: float, interval_ms: float, action: Callable[[], object], scheduler: Scheduler) -> None:
        super().__init__(delay_ms, action)
        self._interval_ms = interval_ms
        self._scheduler = scheduler

    def on_complete(self) -> None:
        self._scheduler.schedule(self._interval_ms, self._action)
        self._action()
