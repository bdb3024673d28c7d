"""Preferred read replicas (KIP-392): the leader refers a consumer to a replica in its rack.

Follows ReplicaManager.findPreferredReadReplica and RackAwareReplicaSelector. A response with a preferred replica does
not wait.
"""

from collections.abc import Callable

from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.metadata.topic import Partition
from sluice.protocol.apis.fetch import PartitionData

from .fetch_session import RequestedPartition
from .partition_reader import PartitionReader

# (partition led by this broker, fetch offset) -> node id of another replica, or None
Select = Callable[[Partition, int], int | None]


class PreferredReplicaReader(PartitionReader):
    __slots__ = ("_reader", "_select")

    def __init__(self, reader: PartitionReader, node_id: int, select: Select) -> None:
        self._reader = reader
        self._node_id = node_id
        self._select = select

    def _preferred(self, item: RequestedPartition) -> int | None:
        partition, requested = item.partition, item.request
        if partition is None or partition.deleted or partition.leader != self._node_id:
            return None
        if partition.epoch_error(max(requested.current_leader_epoch, -1)):
            return None
        return self._select(partition, requested.fetch_offset)

    def is_unchanged(self, item: RequestedPartition) -> bool:
        return self._preferred(item) is None and self._reader.is_unchanged(item)

    def bytes_waiting(self, item: RequestedPartition) -> int | None:
        return self._reader.bytes_waiting(item) if self._preferred(item) is None else None

    def size(self, item: RequestedPartition, max_bytes: int, min_one_batch: bool) -> int:
        return self._reader.size(item, max_bytes, min_one_batch) if self._preferred(item) is None else 0

    def read(
        self, item: RequestedPartition, max_bytes: int, min_one_batch: bool, end: int | None = None
    ) -> tuple[PartitionData, int]:
        preferred = self._preferred(item)
        if preferred is None or item.partition is None:
            return self._reader.read(item, max_bytes, min_one_batch, end)
        log = item.partition.log
        data = PartitionData(
            partition_index=item.request.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=None,
            preferred_read_replica=preferred,
            records=b"",
        )
        return data, 0


def select_in_rack(
    metadata: MetadataCache,
    replica_end: Callable[[Partition, int], int],
    rack: str,
    partition: Partition,
    fetch_offset: int,
) -> int | None:
    """Return the most caught-up replica in the rack, if the leader is in another one."""
    racks = {node.node_id: node.rack for node in metadata.live_brokers}
    if not rack or racks.get(partition.leader) == rack or fetch_offset < partition.log.log_start_offset:
        return None
    ends = {node_id: replica_end(partition, node_id) for node_id in partition.isr if racks.get(node_id) == rack}
    caught_up = [(end, node_id) for node_id, end in ends.items() if end >= fetch_offset]
    return max(caught_up)[1] if caught_up else None
