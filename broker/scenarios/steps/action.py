"""The common parts of steps: their base class, the expected state of the cluster, and the context of a run.

An action is checked against the expected state when the file is read, and executed at its time.
"""

from collections.abc import Callable
from functools import partial

from sluice.broker.controller.controller import BrokerState
from sluice.broker.faults.fault import Fault
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from sluice.broker.server.cluster_server import ClusterServer
from sluice.config.broker_config import Config
from sluice.errors import SluiceError
from sluice.journal_events import NO_ID

OnStarted = Callable[[int, SluiceError | None], None]


class StepProblem(Exception):  # noqa: N818  (becomes a ScenarioError, which has the path)
    """Why an action is not possible, at `part` of its definition in the file."""

    def __init__(self, why: str, part: str = "") -> None:
        super().__init__(why)
        self.part = part


class ExpectedState:
    def __init__(self, config: Config) -> None:
        first, count = config.integer("node.id"), config.integer("sluice.brokers")
        self.config = config
        self.brokers = dict.fromkeys(range(first, first + count), BrokerState.RUNNING)
        self.topics = {  # number of partitions; Kafka's own topics are created on first use
            GROUP_METADATA_TOPIC: config.integer("offsets.topic.num.partitions"),
            TRANSACTION_STATE_TOPIC: config.integer("transaction.state.log.num.partitions"),
        }
        self.faults: set[str] = set()  # ids of rules in force, of those with an id in the file
        self.replicas: dict[tuple[str, int], tuple[int, ...]] = {}  # only partitions with a known placement

    def broker(self, node_id: int, part: str = "") -> BrokerState:
        if node_id not in self.brokers:
            raise StepProblem(
                f"unknown broker; expected one of {', '.join(map(str, self.brokers))}, got {node_id}", part
            )
        return self.brokers[node_id]

    def running(self, node_id: int, part: str) -> None:
        state = self.broker(node_id, part)
        if state is not BrokerState.RUNNING:
            raise StepProblem(f"broker {node_id} is {state.value} at this time", part)

    def end_fault(self, rule_id: str) -> None:
        self.check_fault(rule_id)
        self.faults.remove(rule_id)

    def check_fault(self, rule_id: str) -> None:
        if rule_id not in self.faults:
            rules = f"expected one of {', '.join(sorted(self.faults))}" if self.faults else "no fault rule is"
            raise StepProblem(f"fault rule {rule_id} is not in force at this time; {rules}")

    def partition(self, topic: str, index: int) -> None:
        count = self.topics.get(topic)
        if count is None:
            topics = ", ".join(self.topics)
            raise StepProblem(f"unknown topic at this time; expected one of {topics}, got {topic}", "topic")
        if index >= count:
            raise StepProblem(f"expected partition 0 to {count - 1} of {topic}, got {index}", "partition")


class ScenarioContext:
    def __init__(self, server: ClusterServer, seed: int | None, started: OnStarted) -> None:
        self.server = server
        self.seed = seed
        self.faults: list[Fault] = []  # added by steps
        self.starting = 0
        self._started = started
        self._restore: dict[str, Callable[[], None]] = {}

    def start_broker(self, node_id: int) -> None:
        self.starting += 1
        self.server.start_broker_soon(node_id, partial(self._has_started, node_id))

    def _has_started(self, node_id: int, error: SluiceError | None) -> None:
        self.starting -= 1
        self._started(node_id, error)

    def restore_at_end(self, what: str, restore: Callable[[], None]) -> None:
        """Call `restore` at the end, unless `what` is already registered."""
        self._restore.setdefault(what, restore)

    def restorations(self) -> list[tuple[str, Callable[[], None]]]:
        restore, self._restore = self._restore, {}
        return [*reversed(restore.items())]


class Action:
    """One change of a cluster."""

    broker = NO_ID  # node id of the affected broker
    reversed = ""  # description of the reversal; "" if there is none
    proxy_refusal = ""  # why it cannot work in a proxy, in front of a cluster; "" if it works

    def __init__(self, description: str) -> None:
        self.description = description  # a short sentence, without punctuation at its end

    def check(self, expected: ExpectedState) -> None:
        """Apply the action to the expected state, or raise StepProblem."""

    def do(self, context: ScenarioContext) -> None:
        """Execute the action, or raise SluiceError."""

    def check_reversal(self, expected: ExpectedState) -> None:
        """Apply the reversal to the expected state."""

    def reverse(self, context: ScenarioContext) -> None:
        """Reverse `do`."""

    def inverse(self) -> "Action | None":
        return Reversal(self) if self.reversed else None


class Reversal(Action):
    def __init__(self, of: Action) -> None:
        super().__init__(of.reversed)
        self.broker = of.broker
        self.of = of

    def check(self, expected: ExpectedState) -> None:
        self.of.check_reversal(expected)

    def do(self, context: ScenarioContext) -> None:
        self.of.reverse(context)


class LogMessage(Action):
    """A message, which the run reports."""
