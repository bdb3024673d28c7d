"""The token bucket of controller mutations (KIP-599), which may go into debt. Follows Kafka's `TokenBucket`."""

from .sensor import MAX_THROTTLE_TIME_MS, MS_PER_S, whole_ms


class TokenBucket:
    """A bucket that refills by `bound` tokens per `unit_ms`, up to the refill of all `num_samples` windows (not N-1).

    KIP-599's example: 5 partitions/s and 100 samples of 1 s, so at most 500 tokens. With a full bucket, 560 partitions
    are created:

        500 - 560 = -60 tokens      a debt: throttled for 60 / 5 = 12 s
        1 s later     -55 tokens
        12 s later      0 tokens    (4.5e-15 as a double)

    The bucket is empty at time 0, so it is full at its first use with a clock that counts from 1970.
    """

    __slots__ = ("_last_update_ms", "_tokens", "_unit_ms", "_windows", "bound")

    def __init__(self, bound: float, num_samples: int, window_ms: int, unit_ms: float = MS_PER_S) -> None:
        self.bound = bound
        self._windows = num_samples * (window_ms / unit_ms)  # the length of all samples, in units
        self._unit_ms = unit_ms
        self._tokens = 0.0
        self._last_update_ms = 0

    def record(self, value: float, now_ms: int) -> None:
        """Remove `value` tokens, even if that leaves a debt; a negative value returns tokens."""
        self._tokens = min(self._windows * self.bound, self.measure(now_ms) - value)

    def measure(self, now_ms: int) -> float:
        """Return the tokens at `now_ms`; a negative number is a debt."""
        self._tokens = self.peek(now_ms)
        self._last_update_ms = now_ms
        return self._tokens

    def peek(self, now_ms: int) -> float:
        filled = self._tokens + self.bound * ((now_ms - self._last_update_ms) / self._unit_ms)
        return min(self._windows * self.bound, filled)

    def throttle_time_ms(self, now_ms: int) -> int:
        """Return the time in ms until the debt is refilled; 0 without debt.

        The bound is used per second, regardless of `unit_ms`, as in `ControllerMutationQuotaManager.throttleTimeMs`.
        """
        tokens = self.measure(now_ms)
        if tokens >= 0.0:
            return 0
        if self.bound == 0.0:  # Java divides by zero and continues with Infinity
            return MAX_THROTTLE_TIME_MS
        return whole_ms(-tokens / self.bound * MS_PER_S)
