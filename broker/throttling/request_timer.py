"""How long the thread worked on a request, for quotas of request time (KIP-124). What a request waited is not in it.

Kafka takes the time between two events on one of its threads. Here one thread does everything, so a request's time
begins with the turn that brought it, or where the request before it was done with. Decoding and handling are charged
before the answer goes out, encoding after it, as Kafka does with the time of its network threads.
"""

from sluice.broker.requests.context import RequestContext
from sluice.clock import Clock

_NANOS_PER_MS = 1e6


class RequestTimer:
    """Asked only while there are such quotas: nothing else needs the clock so often."""

    __slots__ = ("_clock", "_since_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ms = 0.0  # when the last request was done with, or one that had waited went on; monotonic

    def take_nanos(self, ctx: RequestContext) -> int:
        """What was worked on the request until now, and was not taken before."""
        worked_ms, ctx.worked_ms = ctx.worked_ms, 0.0
        return round((worked_ms + self._lap_ms(ctx)) * _NANOS_PER_MS)

    def pause(self, ctx: RequestContext) -> None:
        """The request waits from now on."""
        ctx.worked_ms += self._lap_ms(ctx)

    def resume(self) -> None:
        """A request that had waited is worked on from now on."""
        self._since_ms = self._clock.monotonic_ms()

    def _lap_ms(self, ctx: RequestContext) -> float:
        since_ms, self._since_ms = max(ctx.started_ms, self._since_ms), self._clock.monotonic_ms()
        return self._since_ms - since_ms
