"""Throttle times that one connection received: KIP-13's client metrics, measured by the broker.

Kafka's clients measure `produce-throttle-time-avg` and `-max`, and the same for fetches, over 2 samples of 30 s and all
responses. Here only Produce or Fetch responses count, while such quotas exist. Zeros are counted in an integer, which
is ten times as fast, and moved to the samples at least every 30 s.
"""

from math import isnan, nan

from .manager import METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS
from .sensor import SampledStat
from .stats import Max


class _Total(SampledStat):
    __slots__ = ()

    def add_zeros(self, count: int, now_ms: int) -> None:
        self.open_sample(now_ms)
        self._event_count += count - 1

    def peek_count(self, now_ms: int) -> int:
        return sum(sample.event_count for sample, stale in self.peek_samples(now_ms) if not stale)


class ThrottleTimeStats:
    """The throttle times of one kind of response. `now_ms` is wall-clock time."""

    __slots__ = ("_max", "_total", "put_by_ms", "zeros")

    def __init__(self) -> None:
        self._total = _Total(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)
        self._max = Max(METRICS_NUM_SAMPLES, METRICS_SAMPLE_WINDOW_MS)
        self.zeros = 0  # responses without a throttle time, not in a sample yet; incremented by the caller
        self.put_by_ms = 0  # when the caller must call `put_zeros`

    def record(self, throttle_ms: int, now_ms: int) -> None:
        if self.zeros:
            self.put_zeros(now_ms)
        self._total.record(float(throttle_ms), now_ms)
        self._max.record(float(throttle_ms), now_ms)

    def average(self, now_ms: int) -> float:
        """Return the average in ms; NaN without recent responses."""
        count = self._total.peek_count(now_ms) + self._fresh_zeros(now_ms)
        return self._total.peek(now_ms) / count if count else nan

    def maximum(self, now_ms: int) -> float:
        greatest = self._max.peek(now_ms)
        return 0.0 if isnan(greatest) and self._fresh_zeros(now_ms) else greatest

    def _fresh_zeros(self, now_ms: int) -> int:
        return self.zeros if now_ms < self.put_by_ms + METRICS_SAMPLE_WINDOW_MS else 0

    def put_zeros(self, now_ms: int) -> None:
        self._total.add_zeros(self.zeros, now_ms)
        self._max.record(0.0, now_ms)
        self.zeros = 0
        self.put_by_ms = now_ms + METRICS_SAMPLE_WINDOW_MS


class ClientThrottleTimes:
    def __init__(self) -> None:
        self.produce = ThrottleTimeStats()
        self.fetch = ThrottleTimeStats()
