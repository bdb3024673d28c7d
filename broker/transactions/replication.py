"""Waiting for the replicas, as an append with acks=all does: here of records that no client sent."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sluice.purgatory.operation import DelayedOperation

if TYPE_CHECKING:
    from sluice.broker.broker import Broker
    from sluice.broker.cluster import Partition


class _DelayedAppend(DelayedOperation):
    """Waits until the high watermark of each partition is at its offset; a deleted one is not waited for."""

    __slots__ = ("_done", "_required")

    def __init__(self, required: "Mapping[Partition, int]", timeout_ms: float, done: Callable[[bool], None]) -> None:
        super().__init__(timeout_ms)
        self._required = required
        self._done = done

    def try_complete(self) -> bool:
        return self._is_replicated() and self.force_complete()

    def on_complete(self) -> None:
        self._done(self._is_replicated())

    def _is_replicated(self) -> bool:
        return all(
            partition.deleted or partition.log.high_watermark >= offset for partition, offset in self._required.items()
        )


def when_replicated(
    broker: "Broker", required: "Mapping[Partition, int]", timeout_ms: float, done: Callable[[bool], None]
) -> None:
    """Calls `done(True)` when all replicas have what is before these offsets, `done(False)` when time runs out first.

    Waits among the produce requests, as these appends do in Kafka.
    """
    if required:
        operation = _DelayedAppend(required, timeout_ms, done)
        broker.produces.try_complete_else_watch(operation, list(required))
    else:
        done(True)
