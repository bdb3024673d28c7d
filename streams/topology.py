"""What is computed: sources, processors and sinks, as a graph that an application makes (Kafka's Topology and its
InternalTopologyBuilder).

    topology = Topology()
    topology.store("counts")
    lines = topology.source("lines")
    lines.process(split).repartition("words").process(count, stores=["counts"]).sink("word-counts")

`repartition` writes to a topic of the application's own and reads it again, so that all records of a key come to the
same task. What hangs together otherwise, by edges or by a store, is a sub-topology: it is run as a whole, by a task for
each partition of its topics. Sub-topologies are numbered in the order in which their first nodes were made.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .errors import TopologyException
from .processor import AnyProcessor, Record

# Says to which of so many partitions a record goes; where there is none, its key does.
Partitioner = Callable[[Record, int], int]


class Source(NamedTuple):
    """Reads topics."""

    topics: tuple["Topic", ...]


class Process(NamedTuple):
    """Processes records, with stores by their names."""

    processor: AnyProcessor
    stores: tuple[str, ...]


class Sink(NamedTuple):
    """Writes to a topic."""

    topic: "Topic"
    partitioner: Partitioner | None


class Topic(NamedTuple):
    """A topic by its name, or one of the application's own, by its part of the name."""

    name: str
    is_internal: bool = False


class Node:
    """A place in the graph. What follows it is made by its methods."""

    def __init__(
        self, topology: "Topology", name: str, what: Source | Process | Sink, parents: Iterable["Node"]
    ) -> None:
        self.topology = topology
        self.name = name
        self.what = what
        self.children: list[Node] = []
        for parent in parents:
            parent.children.append(self)

    def process(
        self, processor: AnyProcessor, *others: "Node", stores: Sequence[str] = (), name: str | None = None
    ) -> "Node":
        """Gives its records, and those of the others, to a processor. Raises TopologyException."""
        return self.topology.add(name or processor.__name__, Process(processor, tuple(stores)), self, *others)

    def sink(self, topic: str, *, partitioner: Partitioner | None = None) -> None:
        """Writes its records to a topic. Raises TopologyException."""
        self.topology.add(f"sink {topic}", Sink(Topic(topic), partitioner), self)

    def repartition(self, name: str) -> "Node":
        """Writes its records to a topic of the application's own, by key, and reads that: the node that does.

        Raises TopologyException.
        """
        topic = Topic(name, is_internal=True)
        self.topology.add(f"sink {name}", Sink(topic, None), self)
        return self.topology.add(f"source {name}", Source((topic,)))


class Topology:
    """What an application computes."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._stores: set[str] = set()
        self._tables: dict[str, str] = {}

    def source(self, *topics: str) -> Node:
        """Reads topics: the partitions of one number come to one task. Raises TopologyException."""
        if not topics:
            raise TopologyException("a source without topics")
        return self.add(f"source {', '.join(topics)}", Source(tuple(map(Topic, topics))))

    def store(self, name: str) -> None:
        """A keyed store, that is kept in a changelog topic. Raises TopologyException."""
        self._ensure_new(name)
        self._stores.add(name)

    def global_table(self, name: str, topic: str) -> None:
        """All of a topic, the last value of each key: the same for all tasks, read only. Raises TopologyException."""
        self._ensure_new(name)
        self._tables[name] = topic

    def add(self, name: str, what: Source | Process | Sink, *parents: Node) -> Node:
        """A node; those before it give it records. Raises TopologyException."""
        used = {node.name for node in self._nodes}
        if name in used:
            if not isinstance(what, Process):
                raise TopologyException(f"there is already a {name}")
            name = next(f"{name}-{number}" for number in range(2, len(used) + 3) if f"{name}-{number}" not in used)
        if isinstance(what, Source):
            self._ensure_unread(what.topics)
        if isinstance(what, Process):
            for store in what.stores:
                if store not in self._stores:
                    raise TopologyException(f"processor {name}: there is no store {store}")
        node = Node(self, name, what, parents)
        self._nodes.append(node)
        return node

    def build(self, application_id: str) -> "ProcessorTopology":
        """With the names that its topics have in an application. Raises TopologyException where it cannot work."""
        parts = _parts(self._nodes)
        if not parts and not self._tables:
            raise TopologyException("there is nothing to read: the topology has no source")
        unused = self._stores - {store for node in self._nodes for store in stores_of(node)}
        if unused:
            raise TopologyException(f"no processor has the store {', '.join(sorted(unused))}")
        return ProcessorTopology(
            [Subtopology(number, nodes, application_id) for number, nodes in enumerate(parts)], dict(self._tables)
        )

    def _ensure_new(self, name: str) -> None:
        if name in self._stores or name in self._tables:
            raise TopologyException(f"there is already a store or a global table {name}")

    def _ensure_unread(self, topics: Iterable[Topic]) -> None:
        for node in self._nodes:
            again = set(topics) & set(node.what.topics) if isinstance(node.what, Source) else set()
            if again:
                raise TopologyException(f"{node.name} reads topic {min(again).name} already")


class Subtopology:
    """What one task runs. `sources`: by the topics they read; `stores`: their changelog topics by their names."""

    def __init__(self, number: int, nodes: Sequence[Node], application_id: str) -> None:
        self.number = number
        self.nodes = nodes  # each after those that give it records
        self._application_id = application_id
        self.sources = {
            self.topic_name(topic): node
            for node in nodes
            if isinstance(node.what, Source)
            for topic in node.what.topics
        }
        self.stores = {
            store: f"{application_id}-{store}-changelog" for node in nodes for store in sorted(stores_of(node))
        }
        self.repartition_sources = {self.topic_name(topic) for topic in self._read() if topic.is_internal}
        self.sinks = {self.topic_name(node.what.topic) for node in nodes if isinstance(node.what, Sink)}

    def topic_name(self, topic: Topic) -> str:
        """As brokers know it."""
        return f"{self._application_id}-{topic.name}-repartition" if topic.is_internal else topic.name

    def _read(self) -> Iterator[Topic]:
        for node in self.nodes:
            if isinstance(node.what, Source):
                yield from node.what.topics


class ProcessorTopology(NamedTuple):
    """All of an application. `tables`: topics of global tables by their names."""

    subtopologies: Sequence[Subtopology]
    tables: Mapping[str, str]

    @property
    def source_topics(self) -> set[str]:
        """What the group subscribes to."""
        return {topic for part in self.subtopologies for topic in part.sources}


def stores_of(node: Node) -> tuple[str, ...]:
    return node.what.stores if isinstance(node.what, Process) else ()


def _parts(nodes: Sequence[Node]) -> list[list[Node]]:
    """The nodes that hang together, by edges and by stores."""
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
