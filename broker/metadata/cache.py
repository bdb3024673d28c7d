"""The metadata of the cluster, as one broker sees it: Kafka's MetadataCache.

Topics and partitions are the cluster's own objects, shared by all brokers. What a broker may see late is who leads
them (`image`). The metadata of an isolated broker, which the controller no longer reaches, is a subclass with copies:
`controller.isolation.IsolatedMetadata`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from sluice.config.broker_config import Endpoint

from .image import MetadataImage, PartitionLeadership
from .topic import NO_LEADER, Partition, Topic


class Node(Protocol):
    """A broker of the cluster, as clients see it."""

    @property
    def node_id(self) -> int: ...
    @property
    def endpoints(self) -> Mapping[str, Endpoint]: ...


class MetadataCache:
    """Topics, leaders and live brokers."""

    def __init__(
        self,
        topics: dict[str, Topic],
        topics_by_id: dict[bytes, Topic],
        fenced: set[int],
        brokers: Mapping[int, Node],
    ) -> None:
        """Refer to the cluster's own collections: node ids of `fenced` brokers, and all `brokers` by node id."""
        self.topics = topics
        self.topics_by_id = topics_by_id
        self.image: MetadataImage | None = None  # None: this broker learns everything at once
        self._fenced = fenced
        self._brokers = brokers

    def partition(self, topic_name: str, index: int) -> Partition | None:
        """Return a partition by the name of its topic, None if it does not exist."""
        topic = self.topics.get(topic_name)
        return topic.partition(index) if topic is not None else None

    def add_topic(self, topic: Topic) -> Topic:
        """Add a topic of the cluster; return this broker's object for it: the same, unless the broker is isolated."""
        return topic

    def leadership(self, partition: Partition) -> Partition | PartitionLeadership | None:
        """Return the leadership of a partition, None if this broker has not heard of the partition."""
        return partition if self.image is None else self.image.partitions.get(partition)

    def leader(self, leadership: Partition | PartitionLeadership) -> Node | None:
        """Return the broker that leads, None without a live one."""
        return None if leadership.leader in self.fenced else self._brokers.get(leadership.leader)

    @property
    def fenced(self) -> Collection[int]:
        """Node ids of the brokers that this one takes for dead."""
        return self._fenced if self.image is None else self.image.fenced

    @property
    def live_brokers(self) -> Sequence[Node]:
        """The brokers that this one takes for alive."""
        fenced = self.fenced
        if not fenced:
            return list(self._brokers.values())
        return [broker for node_id, broker in self._brokers.items() if node_id not in fenced]

    @property
    def controller_id(self) -> int:
        """The broker that clients send controller requests to: as with KRaft, any live one forwards them."""
        for node_id in self._brokers:  # nearly always the first
            if node_id not in self._fenced:
                return node_id
        return NO_LEADER
