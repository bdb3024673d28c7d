"""Waiting for the replication of records that a broker itself appends, as acks=all does for clients."""

from collections.abc import Callable, Collection, Mapping

from sluice.broker.metadata.topic import Partition
from sluice.purgatory.operation import DelayedOperation

from .replica_manager import ReplicaManager


class _DelayedAppend(DelayedOperation):
    """A wait until each partition's high watermark is at its offset, or its records may be lost."""

    __slots__ = ("_done", "_waiting")

    def __init__(
        self, required: Mapping[Partition, int], timeout_ms: float, done: Callable[[Collection[Partition]], None]
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
    replicas: ReplicaManager,
    required: Mapping[Partition, int],
    timeout_ms: float,
    done: Callable[[Collection[Partition]], None],
) -> DelayedOperation | None:
    """Call `done` after replication or the timeout, with the partitions whose records may be lost.

    The operation waits in the Produce purgatory, as in Kafka, and is returned if it waits.
    """
    if not required:
        done(())
        return None
    operation = _DelayedAppend(required, timeout_ms, done)
    replicas.produces.try_complete_else_watch(operation, list(required))
    return None if operation.completed else operation
