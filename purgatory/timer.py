"""The one timer of a broker: a timing wheel, and a single call of the clock that drives it.

Follows Kafka's `SystemTimer`, of which every purgatory has its own, with a reaper thread and an executor thread. Here
all purgatories share one timer in the thread that owns all state, and the clock calls only when something may be due.
"""

import logging
from bisect import bisect_left
from math import floor, inf

from sluice.clock import Clock, TimerHandle

from .wheel import TimerTask, TimingWheel

_logger = logging.getLogger("sluice.purgatory")

# Upper bounds of the lateness histogram, in ms. 1: the rounding up to a whole millisecond; 2: that and the event
# loop's, whose poll waits whole milliseconds; 5: what we promise for 99 of 100; then a busy and a stalled loop.
LATENESS_BOUNDS_MS = (1.0, 2.0, 5.0, 10.0, 25.0, 100.0, 1000.0)

_NEVER_MS = inf  # nothing is armed: any deadline is earlier
_HOLD_MS = -inf  # arms nothing: no deadline is earlier


class Timer:
    """Runs tasks one after another at the first whole millisecond that is not before their deadline.

    Tasks that expire in the same millisecond run in the order they were added. A task added with a deadline that has
    passed runs at the clock's next chance and never inside `add`, not even when `add` was called by a task that runs:
    whoever adds may finish first, and a task that adds itself again cannot starve the rest.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wheel = TimingWheel(floor(clock.monotonic_ms()))
        self._closed = False
        self._handle: TimerHandle | None = None
        self._armed_ms = _NEVER_MS  # when the clock will call; never later than the earliest deadline in the wheel
        self.cancel = self._wheel.cancel  # no method of ours in between: cancelling is on the request path
        # For the metrics' collector: a count per bound, not cumulative, and one for what was later than the last bound.
        self.lateness_counts = [0] * (len(LATENESS_BOUNDS_MS) + 1)
        self.lateness_sum_ms = 0.0

    def add(self, task: TimerTask, delay_ms: float) -> None:
        """Runs `task` in `delay_ms` milliseconds, a finite number; sets its `deadline_ms`."""
        task.deadline_ms = self._clock.monotonic_ms() + delay_ms
        expiration_ms = self._wheel.add(task)
        if expiration_ms < self._armed_ms:
            self._arm(expiration_ms)

    def close(self) -> None:
        """Stops time: no task runs from now on, those added later included.

        What waits is dropped, not run, as by a Kafka broker that shuts down: its connections are about to close, and an
        answer made up now would be one that no outage causes. It can still be cancelled, or completed by other means.
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
        # `_armed_ms` stays: nothing can expire before it, so what the tasks add is armed once, at the end.
        self._handle = None
        self._wheel.advance(floor(self._clock.monotonic_ms()))
        try:
            self._run_due()
        finally:  # also when a task leaves by KeyboardInterrupt: the rest must not be stuck
            self._arm_next()

    def _run_due(self) -> None:
        # No calls of ours in this loop: of many tasks due at once, the last is late by what each costs here.
        pop_due, monotonic_ms, counts = self._wheel.pop_due, self._clock.monotonic_ms, self.lateness_counts
        while not self._closed and (task := pop_due()) is not None:
            late_ms = monotonic_ms() - task.deadline_ms  # time is read anew: the tasks before this one took theirs
            counts[bisect_left(LATENESS_BOUNDS_MS, late_ms)] += 1
            self.lateness_sum_ms += late_ms
            try:
                task.run()
            except Exception:
                _logger.exception("%r failed as it expired", task)

    def _arm_next(self) -> None:
        if self._closed:
            return
        self._armed_ms = _NEVER_MS
        expiration_ms = self._wheel.next_expiration_ms()
        if expiration_ms is not None:
            self._arm(expiration_ms)
