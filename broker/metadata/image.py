"""A broker's copy of leaders and fenced brokers, which may lag behind the controller: Kafka's MetadataImage."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from .topic import Partition


class PartitionLeadership(Struct, frozen=True):
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class MetadataImage:
    def __init__(self, fenced: Iterable[int], partitions: Mapping[Partition, PartitionLeadership]) -> None:
        self.fenced = frozenset(fenced)
        self.partitions = dict(partitions)


def leadership_of(partition: Partition) -> PartitionLeadership:
    return PartitionLeadership(partition.leader, partition.leader_epoch, partition.replicas, partition.isr)
