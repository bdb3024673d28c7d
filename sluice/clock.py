"""Injected time. The only module that reads the machine's clocks.

As in Kafka: wall-clock milliseconds for quota arithmetic and record timestamps, monotonic milliseconds for deadlines.
Production wraps the event loop; tests advance a `ManualClock`.
"""

import heapq
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from math import ceil
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio


monotonic_s, wall_ns = time.monotonic, time.time_ns


class TimerHandle(Protocol):
    """A pending call."""

    def cancel(self) -> None:
        """Cancel the call, unless it has already run."""


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Return milliseconds since the epoch, which may go back."""

    def monotonic_ms(self) -> float:
        """Return fractional milliseconds since a fixed moment; never goes back."""

    @property
    def reading(self) -> Callable[[], float]:
        """The cheapest function that reads monotonic time, in a unit of the clock."""

    def ms_of(self, reading: float) -> float:
        """Return the `monotonic_ms` of a `reading`."""

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> TimerHandle:
        """Call `callback` once `monotonic_ms()` has reached `deadline_ms`, never before."""


class EventLoop(Protocol):
    """The methods of `asyncio.AbstractEventLoop` that a clock uses, without an import of asyncio."""

    def time(self) -> float:
        """Return monotonic seconds."""

    def call_at(self, when: float, callback: Callable[[], None], /) -> TimerHandle:
        """Call `callback` when `time()` plus the resolution of the loop's clock has passed `when`."""


# Below 69 years, adding this number rounds milliseconds to 1024ths (doubles from 2**42 to 2**43 are 2**-10 apart), and
# subtracting it again is exact; twice as fast as decimal rounding.
_ROUND_TO_1024THS = 1.5 * 2**42


class LoopClock:
    """The machine's clocks, and an event loop's timers.

    Monotonic time is in whole 1024ths of a millisecond. A loop calls early by up to the resolution of its clock (1 ns
    on Linux and macOS), and conversions between seconds and milliseconds may lose the last bit. With rounding, no call
    precedes its deadline, and a virtual-time loop that jumps to a deadline reads exactly that.
    """

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        # Read for every request: time.monotonic takes half the time of asyncio's loop.time.
        is_asyncio_s = getattr(loop.time, "__module__", "") == "asyncio.base_events"
        self._loop_time = self.reading = time.monotonic if is_asyncio_s else loop.time
        self._wall_ns: Callable[[], int] = getattr(loop, "wall_ns", time.time_ns)  # a virtual-time loop has its own

    def wall_ms(self) -> int:
        return self._wall_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return self._loop_time() * 1e3 + _ROUND_TO_1024THS - _ROUND_TO_1024THS

    def ms_of(self, reading: float) -> float:
        return reading * 1e3 + _ROUND_TO_1024THS - _ROUND_TO_1024THS

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> TimerHandle:
        return self._loop.call_at(ceil(deadline_ms * 1024) / 1024e3, callback)


class _ManualTimer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """A clock that changes only with `advance`, which runs each timer at its deadline."""

    def __init__(self, wall_ms: int = 1_700_000_000_000, monotonic_ms: float = 0.0) -> None:
        self._wall_offset_ms = wall_ms - monotonic_ms
        self._now_ms = monotonic_ms
        self._timers: list[tuple[float, int, _ManualTimer]] = []
        self._ids = count()  # timers with the same deadline run in the order of their creation

    def wall_ms(self) -> int:
        return int(self._wall_offset_ms + self._now_ms)

    def monotonic_ms(self) -> float:
        return self._now_ms

    @property
    def reading(self) -> Callable[[], float]:
        return self.monotonic_ms

    def ms_of(self, reading: float) -> float:
        return reading

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> TimerHandle:
        timer = _ManualTimer(callback)
        heapq.heappush(self._timers, (deadline_ms, next(self._ids), timer))
        return timer

    def advance(self, ms: float) -> None:
        """Advance both clocks and run due timers, including those that timers add.

        `advance(0)` runs due timers. A callback may advance the clock itself.
        """
        assert ms >= 0, f"time does not go back: advance({ms})"
        until = self._now_ms + ms
        while self._timers and self._timers[0][0] <= until:
            deadline_ms, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                self._now_ms = max(self._now_ms, deadline_ms)
                timer.callback()
        self._now_ms = max(self._now_ms, until)


async def sleep_ms(clock: Clock, ms: float) -> None:
    """Wait by the injected clock. Requests never sleep: they wait in a purgatory."""
    import asyncio  # already loaded by the caller's event loop

    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_at(clock.monotonic_ms() + ms, partial(_end_sleep, over))
    try:
        await over
    finally:
        timer.cancel()


def _end_sleep(over: "asyncio.Future[None]") -> None:
    if not over.done():  # the sleeper was cancelled in this event-loop iteration, and has not run since
        over.set_result(None)
