"""What KIP-13 asks of a client: the average and the greatest throttle time of its requests over a window, by node and
in all; 0 while nothing is throttled.

Kafka's `produce-throttle-time-avg`, `-max` and `fetch-throttle-time-avg`, `-max`: every answer counts with the time it
tells, 0 too. The window is `metrics.num.samples` samples of `metrics.sample.window.ms` each: a sample is closed when it
is that long, and forgotten when what came last into it is as old as all of them together (Kafka's SampledStat since
3.8). Different on purpose: without any answer in the window Kafka says NaN; here, as in the KIP, that is 0.
"""

from collections import deque
from typing import NamedTuple


class ThrottleTime(NamedTuple):
    """Milliseconds."""

    avg: float
    max: float


class _Sample:
    __slots__ = ("count", "last_ms", "most", "start_ms", "total")

    def __init__(self, start_ms: float) -> None:
        self.start_ms = self.last_ms = start_ms
        self.count = self.total = self.most = 0


class _Window:
    """The throttle times of one node."""

    __slots__ = ("_num_samples", "_sample_ms", "_samples")

    def __init__(self, num_samples: int, sample_ms: int) -> None:
        self._num_samples = num_samples
        self._sample_ms = sample_ms
        self._samples: deque[_Sample] = deque()

    def record(self, throttle_time_ms: int, now_ms: float) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1].start_ms >= self._sample_ms:
            samples.append(_Sample(now_ms))
            # One more than is asked for: the oldest is still partly within the window when another one opens.
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
    """The throttle times of one client, of each node it talks to."""

    __slots__ = ("_by_node", "_num_samples", "_sample_ms")

    def __init__(self, num_samples: int, sample_ms: int) -> None:
        """`metrics.num.samples` and `metrics.sample.window.ms`."""
        self._num_samples = num_samples
        self._sample_ms = sample_ms
        self._by_node: dict[int, _Window] = {}

    def record(self, node_id: int, throttle_time_ms: int, now_ms: float) -> None:
        """An answer of this node came, and told this throttle time."""
        window = self._by_node.get(node_id)
        if window is None:
            window = self._by_node[node_id] = _Window(self._num_samples, self._sample_ms)
        window.record(throttle_time_ms, now_ms)

    def of_node(self, node_id: int, now_ms: float) -> ThrottleTime:
        """Of the requests to one node."""
        window = self._by_node.get(node_id)
        return _combined([] if window is None else window.live(now_ms))

    def of_all(self, now_ms: float) -> ThrottleTime:
        """Of all requests."""
        return _combined([sample for window in self._by_node.values() for sample in window.live(now_ms)])

    def metrics(self, of: str, now_ms: float, node_id: int | None = None) -> dict[str, float]:
        """By Kafka's names, `produce-throttle-time-avg` where `of` is "produce": of one node, or of all."""
        time = self.of_all(now_ms) if node_id is None else self.of_node(node_id, now_ms)
        return {f"{of}-throttle-time-avg": time.avg, f"{of}-throttle-time-max": time.max}

    def nodes(self) -> list[int]:
        """Those that answered at some time."""
        return sorted(self._by_node)


def _combined(samples: list[_Sample]) -> ThrottleTime:
    count = sum(sample.count for sample in samples)
    if not count:
        return ThrottleTime(0.0, 0.0)
    return ThrottleTime(sum(sample.total for sample in samples) / count, float(max(sample.most for sample in samples)))
