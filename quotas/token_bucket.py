"""A bucket that fills at the quota's rate and may go into debt (KIP-599). Follows Kafka's `TokenBucket`.

Kafka holds controller mutations to it: it allows bursts, and the debt says how long to wait.
"""

from .sensor import MAX_THROTTLE_TIME_MS, MS_PER_S, whole_ms


class TokenBucket:
    """Tokens fill up at `bound` per `unit_ms`, to at most what `num_samples` windows bring: all of them, not one less.

    KIP-599's example, 5 partitions/s and 100 samples of 1 s, so room for 500. The bucket is full; 560 are created:

        500 - 560 = -60 tokens      in debt: wait 60 / 5 = 12 s
        1 s later     -55 tokens
        12 s later      0 tokens    (in doubles, 4.5e-15)

    The bucket is empty at time 0. By a clock that counts from 1970 that makes it full on first use; by one that starts
    at 0 it starts empty.
    """

    __slots__ = ("_last_update_ms", "_tokens", "_unit_ms", "_windows", "bound")

    def __init__(self, bound: float, num_samples: int, window_ms: int, unit_ms: float = MS_PER_S) -> None:
        self.bound = bound
        self._windows = num_samples * (window_ms / unit_ms)  # the time of all samples, in units
        self._unit_ms = unit_ms
        self._tokens = 0.0
        self._last_update_ms = 0

    def record(self, value: float, now_ms: int) -> None:
        """Takes `value` tokens out, whether they are there or not; a negative value puts them back."""
        self._tokens = min(self._windows * self.bound, self.measure(now_ms) - value)

    def measure(self, now_ms: int) -> float:
        """The tokens at `now_ms`; below zero is a debt."""
        self._tokens = self.peek(now_ms)
        self._last_update_ms = now_ms
        return self._tokens

    def peek(self, now_ms: int) -> float:
        """What `measure` would return, without a trace."""
        filled = self._tokens + self.bound * ((now_ms - self._last_update_ms) / self._unit_ms)
        return min(self._windows * self.bound, filled)

    def throttle_time_ms(self, now_ms: int) -> int:
        """How long until the debt is paid, in ms; 0 when there is none. Strictly: an empty bucket owes nothing.

        The bound is taken per second, whatever the unit, as `ControllerMutationQuotaManager.throttleTimeMs` does.
        """
        tokens = self.measure(now_ms)
        if tokens >= 0.0:
            return 0
        if self.bound == 0.0:  # Java divides by zero and goes on with infinity
            return MAX_THROTTLE_TIME_MS
        return whole_ms(-tokens / self.bound * MS_PER_S)
