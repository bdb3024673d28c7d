"""Steps that change topics and partitions."""

from msgspec import UNSET

from sluice.broker.controller.elections import Election
from sluice.broker.controller.replica_placement import assignment_problem
from sluice.broker.metadata.new_topic import NewTopic, TopicError
from sluice.broker.metadata.topic import COORDINATOR_TOPICS, NO_LEADER, invalid_topic_name
from sluice.broker.scenarios.model import CreateTopic, Elect, MoveLeader, config_texts
from sluice.config.broker_config import refused_topic_configs
from sluice.errors import ClusterError, NotDurableError
from sluice.journal_events import NO_ID

from .action import Action, ExpectedState, Reversal, ScenarioContext, StepProblem

_ELECTS = "the upstream cluster elects its leaders"


class TopicCreation(Action):
    proxy_refusal = "the upstream cluster has the topics"

    def __init__(self, wanted: CreateTopic) -> None:
        super().__init__(f"topic {wanted.name} is created")
        self._wanted = wanted
        self.new = NewTopic(
            wanted.name,
            -1 if wanted.partitions is UNSET else wanted.partitions,
            -1 if wanted.replicas is UNSET else wanted.replicas,
            () if wanted.assignments is UNSET else tuple(enumerate(wanted.assignments)),
            config_texts(wanted.config),
        )

    def check(self, expected: ExpectedState) -> None:
        new = self.new
        if (problem := invalid_topic_name(new.name)) is not None:
            raise StepProblem(problem, "name")
        if new.name in expected.topics:
            raise StepProblem(f"topic {new.name} already exists", "name")
        if (problem := refused_topic_configs(expected.config, new.own_configs)) is not None:
            raise StepProblem(problem, "config")
        if self._wanted.assignments is UNSET:
            self._check_counts(expected)
        else:
            self._check_assignments(expected)

    def _check_counts(self, expected: ExpectedState) -> None:
        new, config = self.new, expected.config
        replicas = (
            config.integer("default.replication.factor") if new.replication_factor == -1 else new.replication_factor
        )
        if replicas > len(expected.brokers):
            raise StepProblem(
                f"expected at most as many replicas as brokers ({len(expected.brokers)}), got {replicas}", "replicas"
            )
        partitions = config.integer("num.partitions") if new.num_partitions == -1 else new.num_partitions
        expected.topics[new.name] = partitions
        if replicas == len(expected.brokers):
            expected.replicas |= {(new.name, index): tuple(expected.brokers) for index in range(partitions)}

    def _check_assignments(self, expected: ExpectedState) -> None:
        wanted, new = self._wanted, self.new
        if wanted.partitions is not UNSET or wanted.replicas is not UNSET:
            raise StepProblem("excludes partitions and replicas", "assignments")
        if not new.assignments:
            raise StepProblem("expected at least one partition", "assignments")
        for index, replicas in new.assignments:
            problem = assignment_problem(replicas, expected.brokers.keys(), len(new.assignments[0][1]))
            if problem is not None:
                raise StepProblem(problem, f"assignments[{index}]")
            expected.replicas[new.name, index] = tuple(replicas)
        expected.topics[new.name] = len(new.assignments)

    def do(self, context: ScenarioContext) -> None:
        created = context.server.cluster.create(self.new)
        if isinstance(created, TopicError):
            raise ClusterError(f"{self.new.name}: {created.message or created.code.message}")


class InitialTopic(TopicCreation):
    """Creates a topic at the start, unless it exists."""

    def do(self, context: ScenarioContext) -> None:
        if self.new.name not in context.server.cluster.topics:
            super().do(context)


class LeaderMove(Action):
    proxy_refusal = _ELECTS

    def __init__(self, wanted: MoveLeader) -> None:
        super().__init__(f"broker {wanted.to} leads {wanted.topic}-{wanted.partition}")
        self.reversed = f"the previous leader of {wanted.topic}-{wanted.partition} leads it again"
        self.broker = wanted.to
        self._before = NO_LEADER  # leader before the move
        self.wanted = wanted

    def check(self, expected: ExpectedState) -> None:
        wanted = self.wanted
        expected.partition(wanted.topic, wanted.partition)
        expected.running(wanted.to, "to")
        replicas = expected.replicas.get((wanted.topic, wanted.partition), expected.brokers)
        if wanted.to not in replicas:
            raise StepProblem(
                f"expected a broker with a replica ({', '.join(map(str, replicas))}), got {wanted.to}", "to"
            )

    def do(self, context: ScenarioContext) -> None:
        wanted, server = self.wanted, context.server
        ensure_topic(context, wanted.topic)
        self._before = server.partition(wanted.topic, wanted.partition).leader
        server.move_leader(wanted.topic, wanted.partition, wanted.to)

    def reverse(self, context: ScenarioContext) -> None:
        wanted = self.wanted
        if self._before != NO_LEADER:
            context.server.move_leader(wanted.topic, wanted.partition, self._before)

    def inverse(self) -> Action:
        back = Reversal(self)
        back.broker = NO_ID  # the previous leader is known only in a run
        return back


class PartitionElection(Action):
    proxy_refusal = _ELECTS

    def __init__(self, wanted: Elect) -> None:
        super().__init__(f"{wanted.election} election for {wanted.topic}-{wanted.partition}")
        self._wanted = wanted

    def check(self, expected: ExpectedState) -> None:
        expected.partition(self._wanted.topic, self._wanted.partition)

    def do(self, context: ScenarioContext) -> None:
        wanted = self._wanted
        ensure_topic(context, wanted.topic)
        context.server.elect_leader(wanted.topic, wanted.partition, Election[wanted.election.upper()])


def ensure_topic(context: ScenarioContext, topic: str) -> None:
    """Create an internal topic, as Kafka does on first use."""
    if topic in COORDINATOR_TOPICS:
        try:
            context.server.cluster.internal_topic(topic)
        except NotDurableError as error:
            raise ClusterError(f"cannot write {error}") from None
