"""KIP-13's client metrics: average and maximum throttle time over a window, by node and in total.

`produce-throttle-time-avg`, `-max` and `fetch-throttle-time-avg`, `-max` count every response, also with throttle time
0. The window has `metrics.num.samples` samples of `metrics.sample.window.ms` each. A sample closes at that age, and
expires when its last value is as old as the whole window (Kafka's SampledStat since 3.8).
Different on purpose: without a response in the window the value is 0, as in the KIP; Kafka returns NaN.
"""

from collections import deque
from typing import NamedTuple


class ThrottleTime(NamedTuple):
    avg: float
    max: float


class _Sample:
    def __init__(self, start_ms: float) -> None:
        self.start_ms = self.last_ms = start_ms
        self.count = self.total = self.most = 0


class _Window:
    def __init__(self, num_samples: int, sample_ms: int) -> None:
        self._num_samples = num_samples
        self._sample_ms = sample_ms
        self._samples: deque[_Sample] = deque()

    def record(self, throttle_time_ms: int, now_ms: float) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1].start_ms >= self._sample_ms:
            samples.append(_Sample(now_ms))
            # One more than configured: when a sample opens, the oldest is still partly in the window.
            if len(samples) > self._num_samples + 1:
                samples.popleft()
        sample = samples[-1]
        sample.last_ms = now_ms
        sample.count += 1
        sample.total += throttle_time_ms
        sample.most = max(sample.most, throttle_time_ms)

    def live(self, now_ms: float) -> list[_Sample]:
        span_ms = self._num_samples * self._sample_ms
        return [sample for sample in self._samples if now_ms - sample.last_ms < span_ms]


class ThrottleTimes:
    def __init__(self, num_samples: int, sample_ms: int) -> None:
        self._num_samples = num_samples
        self._sample_ms = sample_ms
        self._by_node: dict[int, _Window] = {}

    def record(self, node_id: int, throttle_time_ms: int, now_ms: float) -> None:
        window = self._by_node.get(node_id)
        if window is None:
            window = self._by_node[node_id] = _Window(self._num_samples, self._sample_ms)
        window.record(throttle_time_ms, now_ms)

    def of_node(self, node_id: int, now_ms: float) -> ThrottleTime:
        window = self._by_node.get(node_id)
        return _combined([] if window is None else window.live(now_ms))

    def of_all(self, now_ms: float) -> ThrottleTime:
        return _combined([sample for window in self._by_node.values() for sample in window.live(now_ms)])

    def metrics(self, of: str, now_ms: float, node_id: int | None = None) -> dict[str, float]:
        time = self.of_all(now_ms) if node_id is None else self.of_node(node_id, now_ms)
        return {f"{of}-throttle-time-avg": time.avg, f"{of}-throttle-time-max": time.max}

    def nodes(self) -> list[int]:
        return sorted(self._by_node)


def _combined(samples: list[_Sample]) -> ThrottleTime:
    count = sum(sample.count for sample in samples)
    if not count:
        return ThrottleTime(0.0, 0.0)
    return ThrottleTime(sum(sample.total for sample in samples) / count, float(max(sample.most for sample in samples)))
