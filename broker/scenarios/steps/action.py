"""What steps have in common: the face of what one does, what is known of a cluster before, and what they act on.

An action is checked when the file is read, against what is known of the cluster at its moment, and done when that has
come. What can be undone is undone by an action, too, so that both are checked, reported and noted alike.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from sluice.broker.controller.controller import BrokerState
from sluice.broker.faults.fault import Fault
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from sluice.broker.server.cluster_server import ClusterServer
from sluice.config.broker_config import Config
from sluice.errors import SluiceError
from sluice.journal_events import NOBODY

Told = Callable[[int, SluiceError | None], None]


class Refused(Exception):  # noqa: N818  (it refuses; what it says becomes the error that has the path)
    """Why an action cannot be, at `part` of what the file says of it."""

    def __init__(self, why: str, part: str = "") -> None:
        super().__init__(why)
        self.part = part


class Known:
    """What is known of the cluster at a moment of the scenario, before it runs."""

    def __init__(self, config: Config) -> None:
        first, count = config.integer("node.id"), config.integer("sluice.brokers")
        self.config = config
        self.brokers = dict.fromkeys(range(first, first + count), BrokerState.RUNNING)
        self.topics = {  # with how many partitions; Kafka's own are there when they are asked for
            GROUP_METADATA_TOPIC: config.integer("offsets.topic.num.partitions"),
            TRANSACTION_STATE_TOPIC: config.integer("transaction.state.log.num.partitions"),
        }
        self.faults: set[str] = set()  # ids of the rules that are in force and were given one
        self.replicas: dict[tuple[str, int], tuple[int, ...]] = {}  # of those whose place is known

    def broker(self, node_id: int, part: str = "") -> BrokerState:
        """The state of a broker. Raises Refused where there is none."""
        if node_id not in self.brokers:
            raise Refused(f"there is no broker {node_id}; those there are: {', '.join(map(str, self.brokers))}", part)
        return self.brokers[node_id]

    def end_fault(self, rule_id: str) -> None:
        """A rule is in force no longer. Raises Refused where none of that id is."""
        if rule_id not in self.faults:
            there = f"those in force are {', '.join(sorted(self.faults))}" if self.faults else "none that has an id is"
            raise Refused(f"fault rule {rule_id} is not in force by then; {there}")
        self.faults.remove(rule_id)

    def partition(self, topic: str, index: int) -> None:
        """Raises Refused where there is no such partition."""
        count = self.topics.get(topic)
        if count is None:
            there = ", ".join(self.topics)
            raise Refused(f"there is no topic {topic} by then; those there are: {there}", "topic")
        if index >= count:
            raise Refused(f"{topic} has partitions 0 to {count - 1}, not {index}", "partition")


class Stage:
    """The cluster on which a scenario runs, and what it had before."""

    def __init__(self, server: ClusterServer, seed: int | None, started: Told) -> None:
        """`seed`: of what steps leave to chance. `started` is told that a broker has been started, or why it is not."""
        self.server = server
        self.seed = seed
        self.faults: list[Fault] = []  # that were added
        self.starting = 0
        self._started = started
        self._restore: dict[str, Callable[[], None]] = {}

    def start_broker(self, node_id: int) -> None:
        """Begins to start a broker."""
        self.starting += 1
        self.server.start_broker_soon(node_id, partial(self._has_started, node_id))

    def _has_started(self, node_id: int, error: SluiceError | None) -> None:
        self.starting -= 1
        self._started(node_id, error)

    def remember(self, what: str, restore: Callable[[], None]) -> None:
        """Something is about to be altered, for the first time or again: how it is as it was before the scenario."""
        self._restore.setdefault(what, restore)

    def restored(self) -> list[tuple[str, Callable[[], None]]]:
        """What there is to be restored, which is then forgotten; the last that was altered goes first."""
        restore, self._restore = self._restore, {}
        return [*reversed(restore.items())]


class Action(Protocol):
    """One thing that happens to a cluster."""

    @property
    def broker(self) -> int:
        """The broker that it happens to, NOBODY where it is none."""

    @property
    def words(self) -> str:
        """What happens, as a short sentence without its full stop."""

    def check(self, known: Known) -> None:
        """Raises Refused where it cannot be; else `known` is what is known after it."""

    def do(self, stage: Stage) -> None:
        """Does it. Raises SluiceError where it cannot be."""

    def undone(self) -> "Action | None":
        """What undoes it; None: nothing does."""


class Say:
    """A line for the log and the journal."""

    broker = NOBODY

    def __init__(self, line: str) -> None:
        self.words = line

    def check(self, known: Known) -> None:
        """A line can always be said."""

    def do(self, stage: Stage) -> None:
        """Whoever did this reports the words."""

    def undone(self) -> None:
        return None
