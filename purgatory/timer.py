"""The timer of a broker: a timing wheel, driven by a single scheduled call of the clock.

Follows Kafka's `SystemTimer`, of which every purgatory has one with its own threads. Here all purgatories share one,
and the clock calls it only if a task may be due.
"""

import logging
from bisect import bisect_left
from math import floor, inf

from sluice.clock import Clock, TimerHandle

from .wheel import TimerTask, TimingWheel

_logger = logging.getLogger("sluice.purgatory")

# Bounds of the lateness histogram. 1: rounding up to a whole ms. 2: that, and the event loop's poll, which also waits
# whole ms. 5: our target for 99 %. The others: a busy and a stalled event loop.
LATENESS_BOUNDS_MS = (1.0, 2.0, 5.0, 10.0, 25.0, 100.0, 1000.0)

_NEVER_MS = inf  # not armed: any deadline is earlier
_HOLD_MS = -inf  # closed: no deadline is earlier, so none arms the timer


class Timer:
    """Runs tasks one after another, each at the first whole millisecond at or after its deadline.

    Tasks that expire in the same millisecond run in the order in which they were added. A task with a past deadline
    runs at the clock's next call, never inside `add`, so a task that adds itself again cannot starve others.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wheel = TimingWheel(floor(clock.monotonic_ms()))
        self._closed = False
        self._handle: TimerHandle | None = None
        self._armed_ms = _NEVER_MS  # when the clock will call; at most the earliest deadline in the wheel
        self.cancel = self._wheel.cancel  # bound directly: cancelling is on the request path
        # For metrics: a count per bound, not cumulative, and one above the last bound.
        self.lateness_counts = [0] * (len(LATENESS_BOUNDS_MS) + 1)
        self.lateness_sum_ms = 0.0

    def add(self, task: TimerTask, delay_ms: float) -> None:
        """Run `task` in `delay_ms` milliseconds, a finite number; set its `deadline_ms`."""
        task.deadline_ms = self._clock.monotonic_ms() + delay_ms
        expiration_ms = self._wheel.add(task)
        if expiration_ms < self._armed_ms:
            self._arm(expiration_ms)

    def close(self) -> None:
        """Drop all tasks, as when a Kafka broker shuts down, and any added later.

        They can still be cancelled, or completed otherwise.
        """
        self._closed = True
        self._disarm()
        self._armed_ms = _HOLD_MS

    def _arm(self, expiration_ms: int) -> None:
        self._disarm()
        self._handle = self._clock.call_at(expiration_ms, self._expire)
        self._armed_ms = expiration_ms

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _expire(self) -> None:
        # `_armed_ms` is kept, so that tasks that add others do not arm the clock until `_arm_next`.
        self._handle = None
        self._wheel.advance(floor(self._clock.monotonic_ms()))
        try:
            self._run_due()
        finally:  # even after a KeyboardInterrupt in a task, or the remaining tasks would never run
            self._arm_next()

    def _run_due(self) -> None:
        # No helper calls in this loop: if many tasks are due at once, each call delays the last one.
        pop_due, monotonic_ms, counts = self._wheel.pop_due, self._clock.monotonic_ms, self.lateness_counts
        while not self._closed and (task := pop_due()) is not None:
            late_ms = monotonic_ms() - task.deadline_ms  # reads the clock again: earlier tasks took time
            counts[bisect_left(LATENESS_BOUNDS_MS, late_ms)] += 1
            self.lateness_sum_ms += late_ms
            try:
                task.run()
            except Exception:
                _logger.exception("%r failed at its deadline", task)

    def _arm_next(self) -> None:
        if self._closed:
            return
        self._armed_ms = _NEVER_MS
        expiration_ms = self._wheel.next_expiration_ms()
        if expiration_ms is not None:
            self._arm(expiration_ms)
