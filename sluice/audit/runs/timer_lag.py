"""The lag of the event loop of the brokers, which limits the accuracy of all measurements."""

from collections.abc import Callable
from functools import partial

from sluice.clock import Clock, TimerHandle

_EVERY_MS = 10.0
_PERCENTILE = 0.99


class LagMeter:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._late_ms: list[float] = []
        self._timer: TimerHandle
        self._wait()

    def measure(self) -> Callable[[], float]:
        mark = len(self._late_ms)

        def late_ms() -> float:
            late = sorted(self._late_ms[mark:])
            return late[min(len(late) - 1, int(len(late) * _PERCENTILE))] if late else 0.0

        return late_ms

    def stop(self) -> None:
        self._timer.cancel()

    def _wait(self) -> None:
        due_ms = self._clock.monotonic_ms() + _EVERY_MS
        self._timer = self._clock.call_at(due_ms, partial(self._called, due_ms))

    def _called(self, due_ms: float) -> None:
        self._late_ms.append(self._clock.monotonic_ms() - due_ms)
        self._wait()
