"""Steps that happen to topics and partitions."""

from msgspec import UNSET

from sluice.broker.controller.controller import BrokerState
from sluice.broker.controller.elections import Election
from sluice.broker.controller.errors import ClusterError
from sluice.broker.controller.replica_placement import assignment_problem
from sluice.broker.controller.topic_validation import NewTopic, TopicError, invalid_topic_name
from sluice.broker.metadata.topic import COORDINATOR_TOPICS, NO_LEADER
from sluice.broker.scenarios.model import CreateTopic, Elect, MoveLeader, config_texts
from sluice.config.broker_config import refused_topic_configs
from sluice.errors import NotDurableError
from sluice.journal_events import NOBODY

from .action import Known, Refused, Stage


class TopicCreation:
    """A topic is created."""

    broker = NOBODY

    def __init__(self, wanted: CreateTopic) -> None:
        self.words = f"topic {wanted.name} is created"
        self._wanted = wanted
        self._new = NewTopic(
            wanted.name,
            -1 if wanted.partitions is UNSET else wanted.partitions,
            -1 if wanted.replicas is UNSET else wanted.replicas,
            {} if wanted.assignments is UNSET else dict(enumerate(wanted.assignments)),
            config_texts(wanted.config),
        )

    def check(self, known: Known) -> None:
        new = self._new
        if (problem := invalid_topic_name(new.name)) is not None:
            raise Refused(problem, "name")
        if new.name in known.topics:
            raise Refused(f"topic {new.name} is there already", "name")
        if (problem := refused_topic_configs(known.config, new.own_configs)) is not None:
            raise Refused(problem, "config")
        if self._wanted.assignments is UNSET:
            self._check_counts(known)
        else:
            self._check_assignments(known)

    def _check_counts(self, known: Known) -> None:
        new, config = self._new, known.config
        replicas = (
            config.integer("default.replication.factor") if new.replication_factor == -1 else new.replication_factor
        )
        if replicas > len(known.brokers):
            raise Refused(f"{replicas} replicas are more than there are brokers, {len(known.brokers)}", "replicas")
        partitions = config.integer("num.partitions") if new.num_partitions == -1 else new.num_partitions
        known.topics[new.name] = partitions
        if replicas == len(known.brokers):
            known.replicas |= {(new.name, index): tuple(known.brokers) for index in range(partitions)}

    def _check_assignments(self, known: Known) -> None:
        wanted, new = self._wanted, self._new
        if wanted.partitions is not UNSET or wanted.replicas is not UNSET:
            raise Refused("it stands in place of partitions and replicas", "assignments")
        if not new.assignments:
            raise Refused("at least one partition is needed", "assignments")
        for index, replicas in new.assignments.items():
            problem = assignment_problem(replicas, known.brokers.keys(), len(new.assignments[0]))
            if problem is not None:
                raise Refused(problem, f"assignments[{index}]")
            known.replicas[new.name, index] = tuple(replicas)
        known.topics[new.name] = len(new.assignments)

    def do(self, stage: Stage) -> None:
        created = stage.server.cluster.create(self._new)
        if isinstance(created, TopicError):
            raise ClusterError(f"{self._new.name}: {created.message or created.code.message}")

    def undone(self) -> None:
        return None


class TopicBeforehand(TopicCreation):
    """A topic that is to be there when the scenario begins: one that is there is taken as it is."""

    def do(self, stage: Stage) -> None:
        if self._new.name not in stage.server.cluster.topics:
            super().do(stage)


class LeaderMove:
    """Another replica leads a partition."""

    def __init__(self, wanted: MoveLeader) -> None:
        self.broker = wanted.to
        self.words = f"broker {wanted.to} leads {wanted.topic}-{wanted.partition}"
        self.before = NO_LEADER  # who led until it was done
        self.wanted = wanted

    def check(self, known: Known) -> None:
        wanted = self.wanted
        known.partition(wanted.topic, wanted.partition)
        state = known.broker(wanted.to, "to")
        if state is not BrokerState.RUNNING:
            raise Refused(f"broker {wanted.to} is {state.value} by then", "to")
        replicas = known.replicas.get((wanted.topic, wanted.partition), known.brokers)
        if wanted.to not in replicas:
            there = ", ".join(map(str, replicas))
            raise Refused(f"broker {wanted.to} has no replica of it; those that have: {there}", "to")

    def do(self, stage: Stage) -> None:
        wanted, server = self.wanted, stage.server
        have_topic(stage, wanted.topic)
        self.before = server.partition(wanted.topic, wanted.partition).leader
        server.move_leader(wanted.topic, wanted.partition, wanted.to)

    def undone(self) -> "LeaderMoveBack":
        return LeaderMoveBack(self)


class LeaderMoveBack:
    """Who led a partition before it was moved leads it again."""

    broker = NOBODY

    def __init__(self, move: LeaderMove) -> None:
        self.words = f"who led {move.wanted.topic}-{move.wanted.partition} before leads it again"
        self._move = move

    def check(self, known: Known) -> None:
        """Who leads it by then is not known before it runs."""

    def do(self, stage: Stage) -> None:
        wanted, before = self._move.wanted, self._move.before
        if before != NO_LEADER:
            stage.server.move_leader(wanted.topic, wanted.partition, before)

    def undone(self) -> None:
        return None


class PartitionElection:
    """An election is held."""

    broker = NOBODY

    def __init__(self, wanted: Elect) -> None:
        self.words = f"{wanted.election} election for {wanted.topic}-{wanted.partition}"
        self._wanted = wanted

    def check(self, known: Known) -> None:
        known.partition(self._wanted.topic, self._wanted.partition)

    def do(self, stage: Stage) -> None:
        wanted = self._wanted
        have_topic(stage, wanted.topic)
        stage.server.elect_leader(wanted.topic, wanted.partition, Election[wanted.election.upper()])

    def undone(self) -> None:
        return None


def have_topic(stage: Stage, topic: str) -> None:
    """Kafka's own topics are created when they are first asked for, which a scenario may be the first to do."""
    if topic in COORDINATOR_TOPICS:
        try:
            stage.server.cluster.internal_topic(topic)
        except NotDurableError as error:
            raise ClusterError(f"{error} cannot be written down") from None
