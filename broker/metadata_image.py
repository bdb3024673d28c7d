"""What each broker knows of leaders and of other brokers, where that may be old: Kafka's MetadataImage of one broker.

Without `sluice.metadata.lag.ms` brokers know all at once, and there is no image. With it, a broker tells its clients
(Metadata, DescribeTopicPartitions, DescribeCluster, the hints of KIP-951, FindCoordinator) what was so that long ago.
"""

from typing import TYPE_CHECKING, NamedTuple

from .topic import Partition

if TYPE_CHECKING:
    from .broker import Broker
    from .cluster import Cluster


class Leadership(NamedTuple):
    """What is told of a partition, under the names that Partition has for it."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class MetadataImage:
    """What one broker knows."""

    def __init__(self) -> None:
        self.partitions: dict[Partition, Leadership] = {}
        self.fenced: frozenset[int] = frozenset()


class Publisher:
    """Brings what changed to the brokers."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self._lag_ms = cluster.config.integer("sluice.metadata.lag.ms")
        for broker in cluster.brokers.values():
            self.begin(broker)

    def begin(self, broker: "Broker") -> None:
        """A broker starts, or is back: it loads what there is before it takes requests."""
        if not self._lag_ms:
            return
        image = broker.image = MetadataImage()
        image.fenced = frozenset(self._cluster.fenced)
        for topic in self._cluster.topics.values():
            image.partitions.update((partition, _leadership(partition)) for partition in topic.partitions)

    def partition_created(self, partition: Partition) -> None:
        """A partition is new: no broker has heard of it, not even one whose image was made just now."""
        self.partition_deleted(partition)
        self.partition_changed(partition)

    def partition_changed(self, partition: Partition) -> None:
        """Its leader, its replicas or its ISR are others."""
        if self._lag_ms:
            leadership = _leadership(partition)

            def learn() -> None:
                for image in self._images():
                    image.partitions[partition] = leadership

            self._cluster.housekeeping.later(self._lag_ms, learn)

    def partition_deleted(self, partition: Partition) -> None:
        """A partition is no more. What is deleted is known to be so at once."""
        for image in self._images():
            image.partitions.pop(partition, None)

    def brokers_changed(self) -> None:
        """A broker was fenced or unfenced."""
        if self._lag_ms:
            fenced = frozenset(self._cluster.fenced)

            def learn() -> None:
                for image in self._images():
                    image.fenced = fenced

            self._cluster.housekeeping.later(self._lag_ms, learn)

    def _images(self) -> list[MetadataImage]:
        return [broker.image for broker in self._cluster.brokers.values() if broker.image is not None]


def _leadership(partition: Partition) -> Leadership:
    return Leadership(partition.leader, partition.leader_epoch, partition.replicas, partition.isr)
