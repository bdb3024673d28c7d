"""What steps have in common: the Protocol of their actions, the state that the cluster is expected to have, and what an
action acts on.

An action is checked when the file is read, against the state that the cluster is expected to have at its moment, and
executed when that moment has come. What reverses an action is an action too, so both are checked, reported and recorded
in the same way.
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

OnStarted = Callable[[int, SluiceError | None], None]


class StepProblem(Exception):  # noqa: N818  (becomes a ScenarioError, which has the path)
    """Why an action is not possible, at `part` of its definition in the file."""

    def __init__(self, why: str, part: str = "") -> None:
        super().__init__(why)
        self.part = part


class ExpectedState:
    """The state that the cluster is expected to have at a moment of the scenario, before it runs."""

    def __init__(self, config: Config) -> None:
        first, count = config.integer("node.id"), config.integer("sluice.brokers")
        self.config = config
        self.brokers = dict.fromkeys(range(first, first + count), BrokerState.RUNNING)
        self.topics = {  # number of partitions; Kafka's own topics are created on first use
            GROUP_METADATA_TOPIC: config.integer("offsets.topic.num.partitions"),
            TRANSACTION_STATE_TOPIC: config.integer("transaction.state.log.num.partitions"),
        }
        self.faults: set[str] = set()  # ids of the rules in force that have an id in the file
        self.replicas: dict[tuple[str, int], tuple[int, ...]] = {}  # of partitions whose placement is known

    def broker(self, node_id: int, part: str = "") -> BrokerState:
        """Return the state of a broker. Raises StepProblem if it does not exist."""
        if node_id not in self.brokers:
            raise StepProblem(
                f"there is no broker {node_id}; those there are: {', '.join(map(str, self.brokers))}", part
            )
        return self.brokers[node_id]

    def end_fault(self, rule_id: str) -> None:
        """Remove a rule. Raises StepProblem if no rule of this id is in force."""
        if rule_id not in self.faults:
            there = f"those in force are {', '.join(sorted(self.faults))}" if self.faults else "none that has an id is"
            raise StepProblem(f"fault rule {rule_id} is not in force by then; {there}")
        self.faults.remove(rule_id)

    def partition(self, topic: str, index: int) -> None:
        """Raise StepProblem if a partition does not exist."""
        count = self.topics.get(topic)
        if count is None:
            there = ", ".join(self.topics)
            raise StepProblem(f"there is no topic {topic} by then; those there are: {there}", "topic")
        if index >= count:
            raise StepProblem(f"{topic} has partitions 0 to {count - 1}, not {index}", "partition")


class ScenarioContext:
    """The cluster on which a scenario runs, and what is restored at its end."""

    def __init__(self, server: ClusterServer, seed: int | None, started: OnStarted) -> None:
        """`seed`: of random choices. `started` is called with each broker that has started or failed to start."""
        self.server = server
        self.seed = seed
        self.faults: list[Fault] = []  # added by steps
        self.starting = 0
        self._started = started
        self._restore: dict[str, Callable[[], None]] = {}

    def start_broker(self, node_id: int) -> None:
        """Begin to start a broker."""
        self.starting += 1
        self.server.start_broker_soon(node_id, partial(self._has_started, node_id))

    def _has_started(self, node_id: int, error: SluiceError | None) -> None:
        self.starting -= 1
        self._started(node_id, error)

    def restore_at_end(self, what: str, restore: Callable[[], None]) -> None:
        """Call `restore` at the end, unless an earlier step already registered how to restore `what`."""
        self._restore.setdefault(what, restore)

    def restorations(self) -> list[tuple[str, Callable[[], None]]]:
        """Return and forget what restores the state before the scenario, the last alteration first."""
        restore, self._restore = self._restore, {}
        return [*reversed(restore.items())]


class Action(Protocol):
    """One change of a cluster."""

    @property
    def broker(self) -> int:
        """The node id of the affected broker, or NOBODY."""

    @property
    def description(self) -> str:
        """The action as a short sentence without a full stop."""

    def check(self, expected: ExpectedState) -> None:
        """Raise StepProblem if the action is not possible; else apply it to the expected state."""

    def do(self, context: ScenarioContext) -> None:
        """Execute the action. Raises SluiceError if it is not possible."""

    def inverse(self) -> "Action | None":
        """Return the action that reverses this one; None if none does."""


class LogMessage:
    """A message for the log and the journal."""

    broker = NOBODY

    def __init__(self, line: str) -> None:
        self.description = line

    def check(self, expected: ExpectedState) -> None:
        """A message is always possible."""

    def do(self, context: ScenarioContext) -> None:
        """The run reports the description."""

    def inverse(self) -> None:
        return None
