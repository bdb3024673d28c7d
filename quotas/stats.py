"""The mean and the maximum of recent values, as in Kafka 3.8 and later; `throttle-time` is an `Avg`."""

from math import inf, nan

from .samples import Sample
from .sensor import SampledStat


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
