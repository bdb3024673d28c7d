"""The requests that one read of a socket brought, whose responses are counted together."""

from bisect import bisect_left

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.metrics import REQUEST_SECONDS_BOUNDS

from .route import Route

_NO_READ = -1.0


class CurrentRead:
    def __init__(self, broker: Broker) -> None:
        self._clock = broker.clock
        self._actions = broker.actions
        self.began_ms = _NO_READ  # monotonic
        self.responded: list[Route] = []  # one entry per response

    def begin(self, ctx: RequestContext) -> float:
        """Begin the read of a connection; return monotonic milliseconds."""
        ctx.now_ms = self._clock.wall_ms()
        ctx.session.connection.started_ms = self.began_ms = self._clock.monotonic_ms()
        return self.began_ms

    def end(self) -> None:
        """Count the responses, then complete the operations that the requests made possible."""
        began_ms, self.began_ms = self.began_ms, _NO_READ
        if self.responded:
            _count(self.responded, self._clock.monotonic_ms() - began_ms)
            self.responded = []
        if self._actions.deferred:  # cheaper than a call
            self._actions.complete()

    def count(self, ctx: RequestContext, route: Route) -> None:
        if ctx.error_code:
            route.errors[ctx.error_code] = route.errors.get(ctx.error_code, 0) + 1
        started_ms = ctx.session.connection.started_ms
        if started_ms == self.began_ms:
            self.responded.append(route)
        else:
            _count([route], self._clock.monotonic_ms() - started_ms)

    def resumed(self) -> None:
        """Complete the operations that a resumed request made possible, unless the end of the read does it."""
        if self.began_ms == _NO_READ:
            self._actions.complete()


def _count(routes: list[Route], took_ms: float) -> None:
    """Count a response of each route, which all took this long."""
    seconds = took_ms / 1e3
    bucket = bisect_left(REQUEST_SECONDS_BOUNDS, seconds)
    if len(routes) == 1:
        (route,) = routes
        route.requests += 1
        route.latency_counts[bucket] += 1
        route.latency_sum_s += seconds
        return
    while routes:
        route = routes[0]
        count = routes.count(route)
        route.requests += count
        route.latency_counts[bucket] += count
        route.latency_sum_s += count * seconds
        # The requests of a read are usually of one API.
        routes = [other for other in routes if other is not route] if count < len(routes) else []
