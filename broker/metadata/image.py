"""A broker's copy of leaders and fenced brokers, where it may lag behind the controller: Kafka's MetadataImage."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .topic import Partition


class PartitionLeadership(NamedTuple):
    """The leader and the replicas of a partition, with the names of Partition's own attributes."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class MetadataImage:
    """What one broker has learned so far. Partitions that it has not heard of are missing."""

    def __init__(self, fenced: Iterable[int], partitions: Mapping[Partition, PartitionLeadership]) -> None:
        self.fenced = frozenset(fenced)
        self.partitions = dict(partitions)


def leadership_of(partition: Partition) -> PartitionLeadership:
    """Return the current leadership of a partition."""
    return PartitionLeadership(partition.leader, partition.leader_epoch, partition.replicas, partition.isr)
