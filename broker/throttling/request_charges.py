"""Charges common to all throttling modes: request time (KIP-124), and the record of throttle times.

Request time is a client's share of one thread, in percent. With a quota of 1 % and ten windows of 1 s, a client may use
100 ms in ten seconds.

The metric `sluice_throttle_time_seconds` has a histogram by API and client. The number of series is bounded: the first
throttled clients have their own, until an hour without throttling; the others share `__other__`.
"""

from bisect import bisect_left

from sluice.broker.journal.journal import Journal
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.session import Session
from sluice.clock import Clock
from sluice.metrics import THROTTLE_SECONDS_BOUNDS
from sluice.protocol.apis import ApiKey
from sluice.quotas.client_throttle_times import ClientThrottleTimes
from sluice.quotas.manager import INACTIVE_SENSOR_EXPIRATION_MS, ClientQuotaManager
from sluice.quotas.monotonic_wall_clock import MonotonicWallClock
from sluice.quotas.quota_managers import QuotaManagers

OTHER = "__other__"
_NANOS_PER_MS = 1e6
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


class RequestTimer:
    """The timer of the request in progress; only request quotas use it, as it reads the clock often.

    Kafka measures between two events on a thread. Here, a request's time starts with its read, or at the end of the
    previous request; time in a purgatory does not count. Decoding and handling are charged before the response is sent,
    encoding after it, like the time of Kafka's network threads.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ms = 0.0  # last charge, pause or resumption; monotonic

    def take_nanos(self, ctx: RequestContext) -> int:
        session = ctx.session
        worked_ms, session.worked_ms = session.worked_ms, 0.0
        return round((worked_ms + self._lap_ms(ctx)) * _NANOS_PER_MS)

    def pause(self, ctx: RequestContext) -> None:
        ctx.session.worked_ms += self._lap_ms(ctx)

    def resume(self) -> None:
        self._since_ms = self._clock.monotonic_ms()

    def _lap_ms(self, ctx: RequestContext) -> float:
        since_ms, self._since_ms = max(ctx.session.connection.started_ms, self._since_ms), self._clock.monotonic_ms()
        return self._since_ms - since_ms


class RequestCharges:
    def __init__(
        self,
        quotas: QuotaManagers,
        clock: Clock,
        histograms: ThrottleHistograms,
        journal: Journal | None = None,
        *,
        is_shadow: bool = False,
    ) -> None:
        self.quotas = quotas
        self.is_shadow = is_shadow
        self.clock = clock
        self.time = MonotonicWallClock(quotas.produce.config.window_ms)
        self.request_timer = RequestTimer(clock)
        self.histograms = histograms
        self._journal = journal

    def charge_time(self, ctx: RequestContext, now_ms: int) -> int:
        request = self.quotas.request
        if request is None:
            return 0
        used = request.percentage(self.request_timer.take_nanos(ctx))
        return request.record(ctx.session.user, ctx.session.client_id, used, now_ms)

    def charge_time_no_throttle(self, ctx: RequestContext, now_ms: int) -> None:
        """Charge the time since the last charge, which throttles only the next request."""
        request = self.quotas.request
        if request is not None:
            used = request.percentage(self.request_timer.take_nanos(ctx))
            request.record_no_throttle(ctx.session.user, ctx.session.client_id, used, now_ms)

    def charge_time_exempt(self, ctx: RequestContext, now_ms: int) -> None:
        """Count the processing time in Kafka's metric of exempt requests."""
        request = self.quotas.request
        if request is not None:
            request.record_exempt(request.percentage(self.request_timer.take_nanos(ctx)), now_ms)

    def record_throttle(
        self, ctx: RequestContext, manager: ClientQuotaManager | None, other_ms: int, request_ms: int, now_ms: int
    ) -> ClientQuotaManager:
        """Record only the longer throttle time, and return its manager; if equal, that of request time, as in Kafka.

        `manager` required `other_ms`, for bytes or mutations, or is None.
        """
        by = manager if other_ms > request_ms else self.quotas.request
        assert by is not None, "a throttle time without a quota"
        throttle_ms = max(other_ms, request_ms)
        by.record_throttle_time(ctx.session.user, ctx.session.client_id, throttle_ms, now_ms)
        if ctx.route.api_key == ApiKey.PRODUCE:
            throttle_times_of(ctx.session).produce.record(throttle_ms, now_ms)
        elif ctx.route.api_key == ApiKey.FETCH:
            throttle_times_of(ctx.session).fetch.record(throttle_ms, now_ms)
        self.histograms.add(ctx.route.api_name, ctx.session.user, ctx.session.client_id, throttle_ms, now_ms)
        if self._journal is not None:
            self._journal.throttled(ctx, by.kind, throttle_ms, is_shadow=self.is_shadow)
        return by


def throttle_times_of(session: Session) -> ClientThrottleTimes:
    if session.throttle_times is None:
        session.throttle_times = ClientThrottleTimes()
    return session.throttle_times
