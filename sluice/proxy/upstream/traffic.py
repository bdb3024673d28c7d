"""Counters of the connections to one upstream broker, for the metrics."""

from bisect import bisect_left
from collections import Counter

from sluice.metrics import REQUEST_SECONDS_BOUNDS


class Latencies:
    """The time between a request and its response, of one API."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(REQUEST_SECONDS_BOUNDS) + 1)
        self.sum_s = 0.0


class UpstreamTraffic:
    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "connections",
        "disconnects",
        "errors",
        "failures",
        "invalid_responses",
        "latencies",
        "open",
    )

    def __init__(self) -> None:
        self.open = 0  # connections
        self.connections = 0  # that were made
        self.failures = 0  # attempts that failed
        self.disconnects = 0  # connections that the upstream broker ended
        self.invalid_responses = 0
        self.bytes_sent = 0
        self.bytes_received = 0
        self.errors: Counter[tuple[str, int]] = Counter()  # by API name and code
        self.latencies: dict[str, Latencies] = {}  # by API name

    def answered(self, api: str, took_ms: float) -> None:
        seconds = took_ms / 1e3
        latencies = self.latencies.get(api)
        if latencies is None:
            latencies = self.latencies[api] = Latencies()
        latencies.counts[bisect_left(REQUEST_SECONDS_BOUNDS, seconds)] += 1
        latencies.sum_s += seconds
