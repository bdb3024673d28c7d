"""The cluster metadata of one broker: Kafka's MetadataCache.

All brokers share the objects of topics and partitions; only their leadership (`image`) may be outdated. An isolated
broker has copies (controller/isolation.py).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from sluice.config.broker_config import Endpoint

from .topic import NO_LEADER, Partition, Topic


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


class Node:
    """A broker as clients see it."""

    def __init__(self, node_id: int, rack: str | None) -> None:
        self.node_id = node_id
        self.rack = rack
        self.endpoints: dict[str, Endpoint] = {}


class MetadataCache:
    def __init__(
        self, topics: dict[str, Topic], topics_by_id: dict[bytes, Topic], fenced: set[int], brokers: Mapping[int, Node]
    ) -> None:
        self.topics = topics
        self.topics_by_id = topics_by_id
        self.image: MetadataImage | None = None  # None: without a delay
        self._fenced = fenced
        self._brokers = brokers

    def partition(self, topic_name: str, index: int) -> Partition | None:
        topic = self.topics.get(topic_name)
        return topic.partition(index) if topic is not None else None

    def add_topic(self, topic: Topic) -> Topic:
        """Add a topic; return this broker's object for it."""
        return topic

    def leadership(self, partition: Partition) -> Partition | PartitionLeadership | None:
        return partition if self.image is None else self.image.partitions.get(partition)

    def leader(self, leadership: Partition | PartitionLeadership) -> Node | None:
        return None if leadership.leader in self.fenced else self._brokers.get(leadership.leader)

    @property
    def fenced(self) -> Collection[int]:
        return self._fenced if self.image is None else self.image.fenced

    @property
    def brokers(self) -> Sequence[Node]:
        return list(self._brokers.values())

    @property
    def live_brokers(self) -> Sequence[Node]:
        fenced = self.fenced
        if not fenced:
            return list(self._brokers.values())
        return [broker for node_id, broker in self._brokers.items() if node_id not in fenced]

    @property
    def controller_id(self) -> int:
        """Return the broker for clients' controller requests: as with KRaft, any live one."""
        for node_id in self._brokers:
            if node_id not in self._fenced:
                return node_id
        return NO_LEADER
