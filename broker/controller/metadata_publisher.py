"""What each broker knows of leaders and of other brokers, where that may be old: Kafka's MetadataImage of one broker.

Without `sluice.metadata.lag.ms` brokers know all at once, and there is no image. With it, a broker tells its clients
(Metadata, DescribeTopicPartitions, DescribeCluster, the hints of KIP-951, FindCoordinator) what was so that long ago.
A fault rule can hold a single broker back, by more than that or for ever (`MetadataPublisher.delay_updates`).
"""

from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from sluice.broker.metadata.image import MetadataImage, leadership_of
from sluice.broker.metadata.topic import Partition

if TYPE_CHECKING:
    from .services import BrokerNode, ClusterState


class MetadataPublisher:
    """Brings what changed to the brokers."""

    def __init__(self, cluster: "ClusterState") -> None:
        self._cluster = cluster
        self._lag_ms = cluster.config.integer("sluice.metadata.lag.ms")
        self._delays_ms: dict[int, list[float]] = {}  # by how much, for each who wants that, by node id
        for broker in cluster.brokers.values():
            self.begin(broker)

    def begin(self, broker: "BrokerNode") -> None:
        """A broker starts, or is back: it loads what there is before it takes requests."""
        if self._lag_of(broker.node_id):
            topics = self._cluster.topics.values()
            known = {partition: leadership_of(partition) for topic in topics for partition in topic.partitions}
            broker.metadata.image = MetadataImage(self._cluster.fenced, known)
        else:
            broker.metadata.image = None

    def delay_updates(self, node_id: int, lag_ms: float) -> Callable[[], None]:
        """From now on a broker learns of what changes so much later, or never (inf), until what is returned is called:
        then it learns all that it has missed. Of several who want that, the one counts that wants most.
        """
        self._delays_ms.setdefault(node_id, []).append(lag_ms)
        self._cluster.publish_new_partitions()
        image = self._cluster.brokers[node_id].metadata.image
        if image is None:
            self._begin_again(node_id)
        elif lag_ms == inf:  # what is on its way reaches the image that was
            self._cluster.brokers[node_id].metadata.image = MetadataImage(image.fenced, image.partitions)
        return partial(self._let_go, node_id, lag_ms)

    def _let_go(self, node_id: int, lag_ms: float) -> None:
        before_ms = self._lag_of(node_id)
        self._delays_ms[node_id].remove(lag_ms)
        if self._lag_of(node_id) < before_ms:
            self._begin_again(node_id)

    def _begin_again(self, node_id: int) -> None:
        broker = self._cluster.brokers[node_id]
        if not broker.is_isolated:  # else nothing reaches it anyway, and it begins when that is over
            self.begin(broker)

    def _lag_of(self, node_id: int) -> float:
        return max(self._lag_ms, *self._delays_ms.get(node_id, ()), 0)

    def partition_created(self, partition: Partition) -> None:
        """A partition is new: no broker has heard of it, not even one whose image was made just now."""
        self.partition_deleted(partition)
        self.partition_changed(partition)

    def partition_changed(self, partition: Partition) -> None:
        """Its leader, its replicas or its ISR are others."""
        leadership = leadership_of(partition)

        def learn(image: MetadataImage) -> None:
            image.partitions[partition] = leadership

        self._tell(learn)

    def partition_deleted(self, partition: Partition) -> None:
        """A partition is no more. What is deleted is known to be so at once."""
        for image in self._images():
            image.partitions.pop(partition, None)

    def brokers_changed(self) -> None:
        """A broker was fenced or unfenced."""
        fenced = frozenset(self._cluster.fenced)

        def learn(image: MetadataImage) -> None:
            image.fenced = fenced

        self._tell(learn)

    def _tell(self, learn: Callable[[MetadataImage], None]) -> None:
        """Has every broker learn that, when its time has come."""
        images: dict[float, list[MetadataImage]] = {}
        for node_id, broker in self._cluster.brokers.items():
            lag_ms = self._lag_of(node_id)
            if broker.metadata.image is not None and lag_ms != inf:
                images.setdefault(lag_ms, []).append(broker.metadata.image)
        for lag_ms, late in images.items():
            self._cluster.scheduler.schedule_once(lag_ms, partial(_learn, learn, late))

    def _images(self) -> list[MetadataImage]:
        return [broker.metadata.image for broker in self._cluster.brokers.values() if broker.metadata.image is not None]


def _learn(learn: Callable[[MetadataImage], None], images: list[MetadataImage]) -> None:
    for image in images:  # one that its broker has no more is not looked at
        learn(image)
