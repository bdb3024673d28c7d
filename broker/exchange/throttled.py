"""Throttled connections, as operations in the throttle purgatory (Kafka's ThrottledChannel)."""

from collections.abc import Callable

from sluice.broker.requests.context import RequestContext
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.quotas.manager import ClientQuotaManager


class ThrottledConnection(DelayedOperation):
    """A connection throttled by a quota, counted in its `queue_size`; `resume` is called at the end.

    It expires after its throttle time, or when its connection closes.
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


def mute(
    throttled: DelayedOperationPurgatory,
    ctx: RequestContext,
    by: ClientQuotaManager,
    throttle_ms: int,
    resume: Callable[[], None],
) -> None:
    """Mute the connection of a request, and call `resume` after the throttle time."""
    operation = ThrottledConnection(by, throttle_ms, resume)
    ctx.session.connection.mute(operation.force_complete)
    throttled.delay(operation)
