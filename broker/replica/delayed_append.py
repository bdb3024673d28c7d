"""Waiting for the replicas, as an append with acks=all does: here of records that no client sent."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from sluice.purgatory.operation import DelayedOperation

if TYPE_CHECKING:
    from sluice.broker.metadata.topic import Partition
    from sluice.broker.server.broker import Broker


class _DelayedAppend(DelayedOperation):
    """Waits until the high watermark of each partition is at its offset. Not for a partition that is deleted, nor for
    one that has another leader now: what was appended may be lost.
    """

    __slots__ = ("_done", "_waiting")

    def __init__(
        self,
        required: "Mapping[Partition, int]",
        timeout_ms: float,
        done: "Callable[[Collection[Partition]], None]",
    ) -> None:
        super().__init__(timeout_ms)
        self._waiting = {partition: (offset, partition.leader_epoch) for partition, offset in required.items()}
        self._done = done

    def try_complete(self) -> bool:
        for partition, (offset, epoch) in list(self._waiting.items()):
            if partition.deleted or (partition.leader_epoch == epoch and partition.log.high_watermark >= offset):
                del self._waiting[partition]
        is_over = all(partition.leader_epoch != epoch for partition, (_, epoch) in self._waiting.items())
        return is_over and self.force_complete()

    def on_complete(self) -> None:
        self._done(self._waiting.keys())


def await_replication(
    broker: "Broker",
    required: "Mapping[Partition, int]",
    timeout_ms: float,
    done: "Callable[[Collection[Partition]], None]",
) -> DelayedOperation | None:
    """Calls `done` when all replicas have what is before these offsets, or when that cannot be waited for any longer,
    with the partitions of which it is not known. Returns what waits, if anything does.

    Waits among the produce requests, as these appends do in Kafka.
    """
    if not required:
        done(())
        return None
    operation = _DelayedAppend(required, timeout_ms, done)
    broker.produces.try_complete_else_watch(operation, list(required))
    return None if operation.completed else operation
