"""Time, injected. The only module that reads the machine's clocks.

Two times, as in Kafka: wall-clock milliseconds for quota arithmetic and record timestamps, monotonic milliseconds for
deadlines. Production wraps the event loop; tests advance a `ManualClock` by hand and live through hours in an instant.
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


class TimerHandle(Protocol):
    """A pending call."""

    def cancel(self) -> None:
        """Makes sure the call does not happen; does nothing when it already did."""


class Clock(Protocol):
    """What the broker knows of time."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch, by the wall clock: may step back when the machine's clock is set."""

    def monotonic_ms(self) -> float:
        """Milliseconds since some fixed moment, never going back; fractions count."""

    @property
    def reading(self) -> Callable[[], float]:
        """Reads monotonic time at the least cost there is, in a unit of the clock's own."""

    def ms_of(self, reading: float) -> float:
        """What `monotonic_ms` would have been when `reading` was read."""

    def call_at(self, deadline_ms: float, callback: Callable[[], None]) -> TimerHandle:
        """Calls `callback` once, as soon as `monotonic_ms()` has reached `deadline_ms`, never before."""


class EventLoop(Protocol):
    """What a clock needs of an `asyncio.AbstractEventLoop`. Named here so that a room without I/O that is given a clock
    does not import asyncio with it."""

    def time(self) -> float:
        """Monotonic seconds."""

    def call_at(self, when: float, callback: Callable[[], None], /) -> TimerHandle:
        """Calls `callback` when `time()` plus the resolution of the loop's clock is past `when`."""


# From 2**42 to 2**43 doubles are 2**-10 apart: adding this rounds any number of milliseconds under 69 years to 1024ths,
# and taking it off again is exact. `int` and a division do the same in decimals and take twice the time.
_ROUND_TO_1024THS = 1.5 * 2**42


class LoopClock:
    """The machine's clocks, and an event loop's timers.

    Monotonic time is told in whole 1024ths of a millisecond. A loop calls early by up to the resolution of its clock
    (1 ns on Linux and macOS), and seconds to milliseconds and back may lose the last bit; rounded, neither makes a call
    come before its deadline, and a loop in virtual time that jumps to a deadline reads that very deadline.
    """

    def __init__(self, loop: EventLoop) -> None:
        self._loop = loop
        # Read for every request. A loop of asyncio's answers with time.monotonic(): that itself takes half the time.
        is_asyncio_s = getattr(loop.time, "__module__", "") == "asyncio.base_events"
        self._loop_time = self.reading = time.monotonic if is_asyncio_s else loop.time
        self._wall_ns: Callable[[], int] = getattr(loop, "wall_ns", time.time_ns)  # one in virtual time has its own

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
    """A clock that stands still until `advance` moves it; then every timer on the way runs at its own moment."""

    def __init__(self, wall_ms: int = 1_700_000_000_000, monotonic_ms: float = 0.0) -> None:
        self._wall_offset_ms = wall_ms - monotonic_ms
        self._now_ms = monotonic_ms
        self._timers: list[tuple[float, int, _ManualTimer]] = []
        self._ids = count()  # timers of one moment run in the order they were set

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
        """Moves both clocks on by `ms`, running the timers that fall due, those they set in turn included.

        `advance(0)` runs what is due already. A callback may itself advance the clock; time still never goes back.
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
    """Return after `ms` milliseconds of the injected clock. Requests never sleep: they wait in a purgatory."""
    import asyncio  # the caller runs in an event loop, so it is loaded

    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_at(clock.monotonic_ms() + ms, partial(_end_sleep, over))
    try:
        await over
    finally:
        timer.cancel()


def _end_sleep(over: "asyncio.Future[None]") -> None:
    if not over.done():  # the sleeper was cancelled in this event-loop iteration, and has not run since
        over.set_result(None)
