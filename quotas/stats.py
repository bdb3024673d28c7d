"""The other statistics a Kafka sensor can keep; `throttle-time` is an `Avg`.

Follows `SimpleRate`, `WindowedCount`, `Avg`, `Max`, `Min`, `CumulativeSum` and `CumulativeCount` of Kafka 3.8 and
later, on the ring of samples of `SampledStat`. `WindowedSum` is what a `SampledStat` does by itself.
"""

from math import inf, nan
from sys import float_info

from .samples import Sample
from .sensor import Rate, SampledStat


class WindowedSum(SampledStat):
    """The sum of the values recorded lately."""

    __slots__ = ()


class WindowedCount(WindowedSum):
    """How many values were recorded lately."""

    __slots__ = ()

    def record(self, value: float, now_ms: int) -> None:
        super().record(1.0, now_ms)


class SimpleRate(Rate):
    """A rate per second whose divisor is the time since the oldest sample opened, but at least one window.

    Kafka holds replication to it: without `Rate`'s floor of N-1 windows it takes a burst for what it is.
    """

    __slots__ = ()

    def padded_ms(self, elapsed_ms: int) -> int:
        return max(elapsed_ms, self._windows.window_ms)


class Avg(SampledStat):
    """The mean of the values recorded lately; NaN when there are none."""

    __slots__ = ()

    def combine(self, samples: list[Sample]) -> float:
        count = sum(sample.event_count for sample in samples)
        return super().combine(samples) / count if count else nan


class Max(SampledStat):
    """The greatest of the values recorded lately; NaN when there are none."""

    __slots__ = ()

    INITIAL = -inf

    def record(self, value: float, now_ms: int) -> None:
        self.open_sample(now_ms)
        self._value = max(self._value, value)

    def combine(self, samples: list[Sample]) -> float:
        return max((sample.value for sample in samples if sample.event_count), default=nan)


class Min(SampledStat):
    """The least of the values recorded lately; NaN when there are none."""

    __slots__ = ()

    INITIAL = float_info.max  # Double.MAX_VALUE: Kafka's Min never says Infinity

    def record(self, value: float, now_ms: int) -> None:
        self.open_sample(now_ms)
        self._value = min(self._value, value)

    def combine(self, samples: list[Sample]) -> float:
        return min((sample.value for sample in samples if sample.event_count), default=nan)


class CumulativeSum:
    """The sum of all values ever recorded."""

    __slots__ = ("_total",)

    def __init__(self) -> None:
        self._total = 0.0

    def record(self, value: float, now_ms: int) -> None:
        self._total += value

    def measure(self, now_ms: int) -> float:
        return self._total


class CumulativeCount(CumulativeSum):
    """How many values were ever recorded."""

    __slots__ = ()

    def record(self, value: float, now_ms: int) -> None:
        super().record(1.0, now_ms)
