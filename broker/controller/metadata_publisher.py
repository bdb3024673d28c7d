"""Delayed publication of metadata to brokers, each of which has a MetadataImage as in Kafka.

Without `sluice.metadata.lag.ms`, brokers see changes at once and have no image. With it, a broker returns metadata of
this age (Metadata, DescribeTopicPartitions, DescribeCluster, the leader hints of KIP-951, FindCoordinator). A fault
rule can delay a broker's updates further.
"""

from collections.abc import Callable
from functools import partial
from math import inf

from sluice.broker.metadata.cache import MetadataImage, leadership_of
from sluice.broker.metadata.topic import Partition

from .cluster_state import ClusterMember, ClusterState


class MetadataPublisher:
    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._lag_ms = cluster.config.integer("sluice.metadata.lag.ms")
        self._delays_ms: dict[int, list[float]] = {}
        for broker in cluster.brokers.values():
            self.begin(broker)

    def begin(self, broker: ClusterMember) -> None:
        if self._lag_of(broker.node_id):
            topics = self._cluster.topics.values()
            known = {partition: leadership_of(partition) for topic in topics for partition in topic.partitions}
            broker.metadata.image = MetadataImage(self._cluster.fenced, known)
        else:
            broker.metadata.image = None
        self._cluster.metadata_generation += 1

    def delay_updates(self, node_id: int, lag_ms: float) -> Callable[[], None]:
        """Delay changes for a broker, permanently with inf, until the returned function is called.

        The longest delay applies.
        """
        self._delays_ms.setdefault(node_id, []).append(lag_ms)
        self._cluster.is_simple = False
        image = self._cluster.brokers[node_id].metadata.image
        if image is None:
            self._restart(node_id)
        elif lag_ms == inf:  # so that updates in flight reach only the previous image
            self._cluster.brokers[node_id].metadata.image = MetadataImage(image.fenced, image.partitions)
        return partial(self._end_delay, node_id, lag_ms)

    def _end_delay(self, node_id: int, lag_ms: float) -> None:
        before_ms = self._lag_of(node_id)
        self._delays_ms[node_id].remove(lag_ms)
        if self._lag_of(node_id) < before_ms:
            self._restart(node_id)

    def _restart(self, node_id: int) -> None:
        broker = self._cluster.brokers[node_id]
        if not broker.is_isolated:  # otherwise it loads them when it rejoins
            self.begin(broker)

    def _lag_of(self, node_id: int) -> float:
        return max(self._lag_ms, *self._delays_ms.get(node_id, ()), 0)

    def partition_created(self, partition: Partition) -> None:
        self.partition_deleted(partition)
        self.partition_changed(partition)

    def partition_changed(self, partition: Partition) -> None:
        leadership = leadership_of(partition)

        def update(image: MetadataImage) -> None:
            image.partitions[partition] = leadership

        self._publish(update)

    def partition_deleted(self, partition: Partition) -> None:
        for broker in self._cluster.brokers.values():
            if broker.metadata.image is not None:
                broker.metadata.image.partitions.pop(partition, None)

    def brokers_changed(self) -> None:
        fenced = frozenset(self._cluster.fenced)

        def update(image: MetadataImage) -> None:
            image.fenced = fenced

        self._publish(update)

    def _publish(self, update: Callable[[MetadataImage], None]) -> None:
        images: dict[float, list[MetadataImage]] = {}
        for node_id, broker in self._cluster.brokers.items():
            lag_ms = self._lag_of(node_id)
            if broker.metadata.image is not None and lag_ms != inf:
                images.setdefault(lag_ms, []).append(broker.metadata.image)
        for lag_ms, delayed in images.items():
            self._cluster.runtime.scheduler.schedule_once(lag_ms, partial(_update_images, update, delayed))


def _update_images(update: Callable[[MetadataImage], None], images: list[MetadataImage]) -> None:
    for image in images:  # also those that a broker no longer uses
        update(image)
