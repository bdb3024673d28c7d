"""What a client was told of throttle times: the metrics that KIP-13 asks of clients, seen from the broker.

Kafka's clients have `produce-throttle-time-avg` and `-max`, and the same for fetches, over two samples of 30 s, of all
answers that they get, most of which say 0. Here they are of one connection, and of answers to produce and fetch
requests while there are quotas of their kind. Zeros are counted, and put into the samples at the end of 30 s at the
latest: every answer has to be counted, and a sample takes ten times as long.
"""

from math import isnan, nan

from .manager import METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS
from .stats import Max, WindowedSum


class _Total(WindowedSum):
    """Sum and number of what was recorded lately."""

    __slots__ = ()

    def add_zeros(self, count: int, now_ms: int) -> None:
        self.open_sample(now_ms)
        self._event_count += count - 1

    def peek_count(self, now_ms: int) -> int:
        return sum(sample.event_count for sample, stale in self.peek_samples(now_ms) if not stale)


class ThrottleTimeStats:
    """Of one kind of answers. `now_ms` is wall-clock time."""

    __slots__ = ("_max", "_total", "put_by_ms", "zeros")

    def __init__(self) -> None:
        self._total = _Total(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)
        self._max = Max(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)
        self.zeros = 0  # answers without a throttle time that no sample has yet: for the caller to count up
        self.put_by_ms = 0  # and then to put in, `put_zeros`

    def record(self, throttle_ms: int, now_ms: int) -> None:
        """An answer with one."""
        if self.zeros:
            self.put_zeros(now_ms)
        self._total.record(float(throttle_ms), now_ms)
        self._max.record(float(throttle_ms), now_ms)

    def average(self, now_ms: int) -> float:
        """In ms; NaN where there were no answers lately, as in Kafka. Changes nothing."""
        count = self._total.peek_count(now_ms) + self._fresh_zeros(now_ms)
        return self._total.peek(now_ms) / count if count else nan

    def maximum(self, now_ms: int) -> float:
        """In ms; NaN as above."""
        greatest = self._max.peek(now_ms)
        return 0.0 if isnan(greatest) and self._fresh_zeros(now_ms) else greatest

    def _fresh_zeros(self, now_ms: int) -> int:
        return self.zeros if now_ms < self.put_by_ms + METRICS_SAMPLE_WINDOW_MS else 0

    def put_zeros(self, now_ms: int) -> None:
        """Puts the zeros into the samples of now."""
        self._total.add_zeros(self.zeros, now_ms)
        self._max.record(0.0, now_ms)
        self.zeros = 0
        self.put_by_ms = now_ms + METRICS_SAMPLE_WINDOW_MS


class ClientThrottleTimes:
    """What one connection was told."""

    __slots__ = ("fetch", "produce")

    def __init__(self) -> None:
        self.produce = ThrottleTimeStats()
        self.fetch = ThrottleTimeStats()
