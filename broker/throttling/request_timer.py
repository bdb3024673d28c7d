"""Processing time of requests, for request quotas (KIP-124). Time in a purgatory does not count.

Kafka measures between two events on a thread. Here, a request's time starts with its read, or at the end of the
previous request.

Decoding and handling are charged before the response is sent, encoding after it, like the time of Kafka's network
threads.
"""

from sluice.broker.requests.context import RequestContext
from sluice.clock import Clock

_NANOS_PER_MS = 1e6


class RequestTimer:
    """The timer of the request in progress; only request quotas use it, as it reads the clock often."""

    __slots__ = ("_clock", "_since_ms")

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
