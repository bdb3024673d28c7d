"""Preferred read replicas (KIP-392): the leader refers a consumer to a replica in its rack.

Follows ReplicaManager.findPreferredReadReplica and RackAwareReplicaSelector. A response with a preferred replica does
not wait.
"""

from collections.abc import Callable

from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.metadata.topic import Partition
from sluice.protocol.apis.fetch import PartitionData

from .fetch_session import RequestedPartition
from .partition_reader import PartitionReader, ReplacingReader, data_without_records

# (partition led by this broker, fetch offset) -> node id of another replica, or None
Select = Callable[[Partition, int], int | None]


class PreferredReplicaReader(ReplacingReader):
    __slots__ = ("_select",)

    def __init__(self, reader: PartitionReader, node_id: int, select: Select) -> None:
        super().__init__(reader)
        self._node_id = node_id
        self._select = select

    def _replacement(self, item: RequestedPartition) -> PartitionData | None:
        partition, requested = item.partition, item.request
        if partition is None or partition.deleted or partition.leader != self._node_id:
            return None
        if partition.epoch_error(max(requested.current_leader_epoch, -1)):
            return None
        preferred = self._select(partition, requested.fetch_offset)
        return None if preferred is None else data_without_records(item, partition.log, preferred=preferred)


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
