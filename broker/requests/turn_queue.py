"""Work that continues in a later event-loop iteration, so that no client holds the loop for long.

If a read's requests or a long request take longer than TURN_MS, the rest waits here. Each iteration runs the queue for
up to TURN_MS, oldest first.
"""

from collections import deque
from collections.abc import Callable

from sluice.clock import Clock

# Half of what a throttle may be late; usual requests take 10 us to 0.2 ms.
TURN_MS = 2.0


class TurnQueue:
    """The waiting work of all brokers of the process, which share one event loop."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_scheduled = False

    def add(self, work: Callable[[], None]) -> None:
        """Call `work`, which should return within TURN_MS, once in a later event-loop iteration."""
        self._waiting.append(work)
        if not self._is_scheduled:
            self._schedule()

    def _schedule(self) -> None:
        self._is_scheduled = True
        self.clock.call_at(self.clock.monotonic_ms(), self._run)

    def _run(self) -> None:
        end_ms = self.clock.monotonic_ms() + TURN_MS
        try:
            for _ in range(len(self._waiting)):  # excluding work added meanwhile
                self._waiting.popleft()()
                if self.clock.monotonic_ms() >= end_ms:
                    break
        finally:
            self._is_scheduled = False
            if self._waiting:
                self._schedule()
