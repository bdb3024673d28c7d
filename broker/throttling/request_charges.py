"""Charges common to all throttling modes: request time (KIP-124), the record of throttle times, and queue sizes.

Request time is a client's share of one thread, in percent. With a quota of 1 % and ten windows of 1 s, a client may use
100 ms in ten seconds.
"""

from collections.abc import Callable

from sluice.broker.journal.journal import Journal
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.request_timer import RequestTimer
from sluice.broker.requests.session import Session
from sluice.clock import Clock
from sluice.protocol.apis import ApiKey
from sluice.purgatory.operation import DelayedOperation
from sluice.quotas.client_throttle_times import ClientThrottleTimes
from sluice.quotas.manager import ClientQuotaManager
from sluice.quotas.monotonic_wall_clock import MonotonicWallClock
from sluice.quotas.quota_managers import QuotaManagers

from .throttle_histogram import ThrottleHistograms


class RequestCharges:
    def __init__(
        self,
        quotas: QuotaManagers,
        clock: Clock,
        histograms: ThrottleHistograms,
        journal: Journal | None = None,
    ) -> None:
        self.quotas = quotas
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
            self._journal.throttled(ctx, by.kind, throttle_ms)
        return by


class ThrottledConnection(DelayedOperation):
    """A connection throttled by a quota (Kafka's ThrottledChannel), counted in its `queue_size`.

    It expires after its throttle time, or when its connection closes; then it calls `resume`.
    """

    __slots__ = ("_by", "_resume")

    def __init__(self, by: ClientQuotaManager, throttle_ms: int, resume: Callable[[], None]) -> None:
        super().__init__(throttle_ms)
        self._by = by
        self._resume = resume
        by.queue_size += 1

    def on_complete(self) -> None:
        self._by.queue_size -= 1
        self._resume()


def throttle_times_of(session: Session) -> ClientThrottleTimes:
    if session.throttle_times is None:
        session.throttle_times = ClientThrottleTimes()
    return session.throttle_times
