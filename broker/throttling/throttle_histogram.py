"""Throttle times by API and client, for the metric `sluice_throttle_time_seconds`.

The number of series is bounded: the first throttled clients have their own, until an hour without throttling; the
others share `__other__`.
"""

from bisect import bisect_left

from sluice.metrics import THROTTLE_SECONDS_BOUNDS
from sluice.quotas.manager import INACTIVE_SENSOR_EXPIRATION_MS

OTHER = "__other__"
_BOUNDS_MS = [bound * 1000 for bound in THROTTLE_SECONDS_BOUNDS]


class ThrottleHistogram:
    __slots__ = ("counts", "last_ms", "total_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS_MS) + 1)
        self.total_ms = 0
        self.last_ms = 0

    def add(self, throttle_ms: int, now_ms: int) -> None:
        self.counts[bisect_left(_BOUNDS_MS, throttle_ms)] += 1
        self.total_ms += throttle_ms
        self.last_ms = now_ms


class ThrottleHistograms:
    def __init__(self, max_clients: int) -> None:
        self._max_clients = max_clients
        self._clients: set[tuple[str, str]] = set()
        self.by_api: dict[tuple[str, str, str], ThrottleHistogram] = {}  # API, user, client id

    def add(self, api: str, user: str, client_id: str, throttle_ms: int, now_ms: int) -> None:
        client = (user, client_id)
        if client not in self._clients:
            if len(self._clients) < self._max_clients:
                self._clients.add(client)
            else:
                client = ("", OTHER)
        times = self.by_api.get((api, *client))
        if times is None:
            times = self.by_api[(api, *client)] = ThrottleHistogram()
        times.add(throttle_ms, now_ms)

    def expire(self, now_ms: int) -> None:
        self.by_api = {
            key: times for key, times in self.by_api.items() if now_ms - times.last_ms <= INACTIVE_SENSOR_EXPIRATION_MS
        }
        self._clients = {(user, client_id) for _, user, client_id in self.by_api if (user, client_id) != ("", OTHER)}
