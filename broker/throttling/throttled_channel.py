"""Throttled connections, as operations in the throttle purgatory (Kafka's ThrottledChannel).

An operation expires after its throttle time, or when its connection closes.
"""

from collections.abc import Callable

from sluice.broker.requests.context import Outcome, RequestContext
from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation
from sluice.quotas.manager import ClientQuotaManager


class ThrottledChannel(DelayedOperation):
    """A connection throttled by the quota of `manager`, counted in its `queue_size`."""

    __slots__ = ("_ctx", "_manager")

    def __init__(self, ctx: RequestContext, manager: ClientQuotaManager, throttle_ms: int) -> None:
        super().__init__(throttle_ms)
        self._ctx = ctx
        self._manager = manager
        manager.queue_size += 1

    def on_complete(self) -> None:
        self._manager.queue_size -= 1
        self.resume()

    def resume(self) -> None:
        raise NotImplementedError


class MutedChannel(ThrottledChannel):
    """A connection that is not read during its throttle time, after the response (KIP-219)."""

    __slots__ = ()

    def resume(self) -> None:
        self._ctx.connection.resume()


class HeldResponse(ThrottledChannel):
    """A response, without references to request memory, sent after its throttle time (KIP-13)."""

    __slots__ = ("_finish",)

    def __init__(
        self, ctx: RequestContext, manager: ClientQuotaManager, throttle_ms: int, finish: Callable[[], None]
    ) -> None:
        super().__init__(ctx, manager, throttle_ms)
        self._finish = finish  # sends the response, or throttles the connection again

    def resume(self) -> None:
        connection = self._ctx.connection
        connection.waiting = False
        self._finish()
        if not connection.waiting:
            connection.resume()


class HeldFetch(ThrottledChannel):
    """A fetch that reads the log and responds after its throttle time (KIP-13)."""

    __slots__ = ("_read", "_throttle_ms")

    def __init__(
        self,
        ctx: RequestContext,
        manager: ClientQuotaManager,
        throttle_ms: int,
        read: Callable[[int], Message | Outcome],
    ) -> None:
        super().__init__(ctx, manager, throttle_ms)
        self._read = read
        self._throttle_ms = throttle_ms

    def resume(self) -> None:
        self._ctx.responder.complete(self._ctx, self._respond)

    def _respond(self) -> Message | Outcome:
        return self._read(self._throttle_ms)
