"""Other statistics of Kafka's sensors; `throttle-time` is an `Avg`.

Follows Kafka 3.8 and later, on the ring of samples of `SampledStat`, which computes the `WindowedSum` itself.
"""

from math import inf, nan
from sys import float_info

from .samples import Sample
from .sensor import Rate, SampledStat


class WindowedSum(SampledStat):
    __slots__ = ()


class WindowedCount(WindowedSum):
    __slots__ = ()

    def record(self, value: float, now_ms: int) -> None:
        super().record(1.0, now_ms)


class SimpleRate(Rate):
    """A rate per second over the time since the oldest sample opened, at least one window.

    Kafka uses it for replication quotas. It measures a burst at its actual rate.
    """

    __slots__ = ()

    def padded_ms(self, elapsed_ms: int) -> int:
        return max(elapsed_ms, self._windows.window_ms)


class Avg(SampledStat):
    """The mean of recent values; NaN without any."""

    __slots__ = ()

    def combine(self, samples: list[Sample]) -> float:
        count = sum(sample.event_count for sample in samples)
        return super().combine(samples) / count if count else nan


class Max(SampledStat):
    __slots__ = ()

    INITIAL = -inf

    def record(self, value: float, now_ms: int) -> None:
        self.open_sample(now_ms)
        self._value = max(self._value, value)

    def combine(self, samples: list[Sample]) -> float:
        return max((sample.value for sample in samples if sample.event_count), default=nan)


class Min(SampledStat):
    __slots__ = ()

    INITIAL = float_info.max  # Double.MAX_VALUE, not Infinity, as in Kafka

    def record(self, value: float, now_ms: int) -> None:
        self.open_sample(now_ms)
        self._value = min(self._value, value)

    def combine(self, samples: list[Sample]) -> float:
        return min((sample.value for sample in samples if sample.event_count), default=nan)


class CumulativeSum:
    __slots__ = ("_total",)

    def __init__(self) -> None:
        self._total = 0.0

    def record(self, value: float, now_ms: int) -> None:
        self._total += value

    def measure(self, now_ms: int) -> float:
        return self._total


class CumulativeCount(CumulativeSum):
    __slots__ = ()

    def record(self, value: float, now_ms: int) -> None:
        super().record(1.0, now_ms)
