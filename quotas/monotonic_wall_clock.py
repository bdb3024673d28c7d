"""Wall-clock time for quota arithmetic that never steps back by more than a window.

Kafka's arithmetic uses the wall clock unchanged. If it steps back by an hour, the open sample sums up an hour of
traffic, and a token bucket loses an hour's refill.
"""

from msgspec import Struct


class MonotonicWallClock(Struct, eq=False):
    """A clock that adds to wall-clock readings the time by which they stepped back."""

    window_ms: int  # readings of one event-loop iteration may be out of order; less than a window is harmless
    _latest_ms: int = 0
    _set_back_ms: int = 0

    def peek(self, wall_ms: int) -> int:
        """Return the time for quotas when the clock reads `wall_ms`, without recording the reading."""
        return wall_ms + self._set_back_ms

    def at(self, wall_ms: int) -> int:
        if wall_ms >= self._latest_ms:
            self._latest_ms = wall_ms
        elif wall_ms < self._latest_ms - self.window_ms:
            self._set_back_ms += self._latest_ms - wall_ms
            self._latest_ms = wall_ms
        return wall_ms + self._set_back_ms
