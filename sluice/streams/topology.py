"""The graph of sources, processors and sinks of an application (Kafka's Topology and InternalTopologyBuilder).

    topology = Topology()
    topology.store("counts")
    lines = topology.source("lines")
    lines.process(split).repartition("words").process(count, stores=["counts"]).sink("word-counts")

`repartition` writes to an internal topic and reads it again, so that all records of a key reach the same task. Nodes
connected by edges or a store form a sub-topology, which one task runs for each partition of its topics.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .errors import TopologyException
from .processor import AnyProcessor, Record

Partitioner = Callable[[Record, int], int]


class Source(NamedTuple):
    topics: tuple["Topic", ...]


class Process(NamedTuple):
    processor: AnyProcessor
    stores: tuple[str, ...]


class Sink(NamedTuple):
    """The role of a node that writes to a topic. Without `partitioner`, the key determines the partition."""

    topic: "Topic"
    partitioner: Partitioner | None


class Topic(NamedTuple):
    """A topic; the name of an internal one has no prefix and suffix yet."""

    name: str
    is_internal: bool = False


class Node:
    """A node of the graph; its methods create its children."""

    def __init__(
        self, topology: "Topology", name: str, role: Source | Process | Sink, parents: Iterable["Node"]
    ) -> None:
        self.topology = topology
        self.name = name
        self.role = role
        self.children: list[Node] = []
        for parent in parents:
            parent.children.append(self)

    def process(
        self, processor: AnyProcessor, *others: "Node", stores: Sequence[str] = (), name: str | None = None
    ) -> "Node":
        """Process the records of this and other nodes with a processor and its stores; raise TopologyException."""
        return self.topology.add(name or processor.__name__, Process(processor, tuple(stores)), self, *others)

    def sink(self, topic: str, *, partitioner: Partitioner | None = None) -> None:
        """Write records to a topic; raise TopologyException if it has a sink already."""
        self.topology.add(f"sink {topic}", Sink(Topic(topic), partitioner), self)

    def repartition(self, name: str) -> "Node":
        """Write records to an internal topic by key, and return a source node of it; raise TopologyException."""
        topic = Topic(name, is_internal=True)
        self.topology.add(f"sink {name}", Sink(topic, None), self)
        return self.topology.add(f"source {name}", Source((topic,)))


class Topology:
    """The definition of an application."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._stores: set[str] = set()
        self._tables: dict[str, str] = {}

    def source(self, *topics: str) -> Node:
        """Read topics; one task reads the partitions with the same index."""
        if not topics:
            raise TopologyException("source: expected at least one topic, got none")
        return self.add(f"source {', '.join(topics)}", Source(tuple(map(Topic, topics))))

    def store(self, name: str) -> None:
        """Add a keyed store with a changelog topic; raise TopologyException."""
        self._ensure_new(name)
        self._stores.add(name)

    def global_table(self, name: str, topic: str) -> None:
        """Add a read-only table: the last value of each key of a topic, for all tasks."""
        self._ensure_new(name)
        self._tables[name] = topic

    def add(self, name: str, role: Source | Process | Sink, *parents: Node) -> Node:
        """Add a node; raise TopologyException."""
        used = {node.name for node in self._nodes}
        if name in used:
            if not isinstance(role, Process):
                raise TopologyException(f"{name} already exists")
            name = next(f"{name}-{number}" for number in range(2, len(used) + 3) if f"{name}-{number}" not in used)
        if isinstance(role, Source):
            self._ensure_unread(role.topics)
        if isinstance(role, Process):
            for store in role.stores:
                if store not in self._stores:
                    raise TopologyException(f"processor {name}: store {store} does not exist; add it with store()")
        node = Node(self, name, role, parents)
        self._nodes.append(node)
        return node

    def build(self, application_id: str) -> "ProcessorTopology":
        """Return the topology with an application's topic names; raise TopologyException."""
        parts = _parts(self._nodes)
        if not parts and not self._tables:
            raise TopologyException("the topology has no source and no global table")
        unused = self._stores - {store for node in self._nodes for store in stores_of(node)}
        if unused:
            raise TopologyException(f"no processor uses store {', '.join(sorted(unused))}")
        return ProcessorTopology(
            [Subtopology(number, nodes, application_id) for number, nodes in enumerate(parts)], dict(self._tables)
        )

    def _ensure_new(self, name: str) -> None:
        if name in self._stores or name in self._tables:
            raise TopologyException(f"store or global table {name} already exists")

    def _ensure_unread(self, topics: Iterable[Topic]) -> None:
        for node in self._nodes:
            again = set(topics) & set(node.role.topics) if isinstance(node.role, Source) else set()
            if again:
                raise TopologyException(f"topic {min(again).name} is already read by {node.name}")


class Subtopology:
    """The nodes that one task runs. `sources`: by topic; `stores`: changelog topics by store."""

    def __init__(self, number: int, nodes: Sequence[Node], application_id: str) -> None:
        self.number = number
        self.nodes = nodes  # parents first
        self._application_id = application_id
        self.sources = {
            self.topic_name(topic): node
            for node in nodes
            if isinstance(node.role, Source)
            for topic in node.role.topics
        }
        self.stores = {
            store: f"{application_id}-{store}-changelog" for node in nodes for store in sorted(stores_of(node))
        }
        self.repartition_sources = {self.topic_name(topic) for topic in self._read() if topic.is_internal}
        self.sinks = {self.topic_name(node.role.topic) for node in nodes if isinstance(node.role, Sink)}

    def topic_name(self, topic: Topic) -> str:
        return f"{self._application_id}-{topic.name}-repartition" if topic.is_internal else topic.name

    def _read(self) -> Iterator[Topic]:
        for node in self.nodes:
            if isinstance(node.role, Source):
                yield from node.role.topics


class ProcessorTopology(NamedTuple):
    """The topology of one application. `tables`: topics of global tables by name."""

    subtopologies: Sequence[Subtopology]
    tables: Mapping[str, str]

    @property
    def source_topics(self) -> set[str]:
        return {topic for part in self.subtopologies for topic in part.sources}


def stores_of(node: Node) -> tuple[str, ...]:
    return node.role.stores if isinstance(node.role, Process) else ()


def _parts(nodes: Sequence[Node]) -> list[list[Node]]:
    part_of: dict[Node, int] = {node: number for number, node in enumerate(nodes)}

    def join(one: Node, other: Node) -> None:
        low, high = sorted((part_of[one], part_of[other]))
        for node, number in part_of.items():
            if number == high:
                part_of[node] = low

    users: dict[str, Node] = {}
    for node in nodes:
        for child in node.children:
            join(node, child)
        for store in stores_of(node):
            join(users.setdefault(store, node), node)
    numbers = sorted(set(part_of.values()))
    return [[node for node in nodes if part_of[node] == number] for number in numbers]
