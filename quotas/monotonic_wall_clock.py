"""Wall-clock time for quota arithmetic that never goes far back.

Kafka's arithmetic takes the wall clock as it is (and `sensor`, `token_bucket` do as Kafka does, bit for bit). When that
is set back by an hour, a sample that was opened before stays open for an hour and sums up all that is sent meanwhile,
and a token bucket loses what an hour fills: clients wait for longer and longer. Here the time before the step is the
time to count on from.
"""


class MonotonicWallClock:
    """Takes wall-clock readings; adds to them what the clock was set back."""

    __slots__ = ("_latest_ms", "_set_back_ms", "_tolerated_ms")

    def __init__(self, window_ms: int) -> None:
        # Readings of one turn of the loop may come out of order, and less than a window does no harm.
        self._tolerated_ms = window_ms
        self._latest_ms = 0
        self._set_back_ms = 0

    def peek(self, wall_ms: int) -> int:
        """The time for quotas when the clock shows `wall_ms`, for someone who only looks."""
        return wall_ms + self._set_back_ms

    def at(self, wall_ms: int) -> int:
        """The time for quotas when the clock shows `wall_ms`."""
        if wall_ms >= self._latest_ms:
            self._latest_ms = wall_ms
        elif wall_ms < self._latest_ms - self._tolerated_ms:
            self._set_back_ms += self._latest_ms - wall_ms
            self._latest_ms = wall_ms
        return wall_ms + self._set_back_ms
