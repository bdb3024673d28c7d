"""The cluster metadata of a client: nodes, topics and partition leaders.

Kafka's Cluster and MetadataSnapshot in one; immutable.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from sluice.protocol.errors import ErrorCode
from sluice.text.arguments import Index

V = TypeVar("V")

NO_LEADER = -1
NO_EPOCH = -1


class Node(NamedTuple):
    """A broker, or an address of `bootstrap.servers`, with the id -1, -2, ..."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id {self.id})"


class TopicPartition(NamedTuple):
    topic: str
    partition: Index

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class PartitionMetadata(NamedTuple):
    """The metadata of one partition; -1: unknown."""

    leader_id: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error_code: int = ErrorCode.NONE


class LeaderAndEpoch(NamedTuple):
    """The leader of a partition, None if unknown, and its epoch, -1 if unknown."""

    leader: Node | None
    epoch: int


Partitions = Mapping[int, PartitionMetadata]


class Cluster:
    """One state of the cluster. `topics`: partitions by topic; `topic_errors`: codes of other topics."""

    def __init__(
        self,
        nodes: Mapping[int, Node],
        *,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: Mapping[str, Partitions] | None = None,
        topic_ids: Mapping[str, bytes] | None = None,
        topic_errors: Mapping[str, int] | None = None,
        internal_topics: Iterable[str] = (),
        is_bootstrap: bool = False,
    ) -> None:
        self.nodes = nodes
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics: Mapping[str, Partitions] = topics or {}
        self.topic_ids: Mapping[str, bytes] = topic_ids or {}
        self.topic_names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        self.topic_errors: Mapping[str, int] = topic_errors or {}
        self.internal_topics = frozenset(internal_topics)
        self.is_bootstrap = is_bootstrap

    @classmethod
    def bootstrap(cls, servers: Iterable[str]) -> "Cluster":
        nodes = {}
        for node_id, server in zip(range(-1, -(2**31), -1), servers):  # noqa: B905  (the range is longer)
            host, _, port = server.rpartition(":")
            nodes[node_id] = Node(node_id, host.removeprefix("[").removesuffix("]"), int(port))
        return cls(nodes, is_bootstrap=True)

    @property
    def controller(self) -> Node | None:
        return self.nodes.get(self.controller_id)

    def partition(self, partition: TopicPartition) -> PartitionMetadata | None:
        partitions = self.topics.get(partition.topic)
        return None if partitions is None else partitions.get(partition.partition)

    def node_if_online(self, partition: TopicPartition, node_id: int) -> Node | None:
        known = self.partition(partition)
        if known is None or node_id not in known.replicas or node_id in known.offline:
            return None
        return self.nodes.get(node_id)

    def partitions_of(self, topic: str) -> list[int]:
        return sorted(self.topics.get(topic, ()))


class _OfPartition(Protocol):
    @property
    def partition_index(self) -> int: ...


P_co = TypeVar("P_co", bound=_OfPartition, covariant=True)


class _OfTopic(Protocol[P_co]):
    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Sequence[P_co]: ...


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    indexes: dict[str, list[int]] = {}
    for topic, index in partitions:
        indexes.setdefault(topic, []).append(index)
    return indexes


def values_by_topic(values: Mapping[TopicPartition, V]) -> dict[str, list[tuple[int, V]]]:
    pairs: dict[str, list[tuple[int, V]]] = {}
    for (topic, index), value in values.items():
        pairs.setdefault(topic, []).append((index, value))
    return pairs


def by_partition(topics: Iterable[_OfTopic[P_co]]) -> dict[TopicPartition, P_co]:
    return {TopicPartition(topic.name, one.partition_index): one for topic in topics for one in topic.partitions}
