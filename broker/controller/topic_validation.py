"""Validation of new topics: names, sizes, and replica placement.

Follows the checks of Kafka's ReplicationControlManager (createTopics, createPartitions) in their order, and Topic.
"""

from collections.abc import Collection, Iterable

from sluice.broker.metadata.new_topic import EXCESSIVE_PARTITIONS, MAX_PARTITIONS, NewTopic, TopicError
from sluice.broker.metadata.topic import METADATA_TOPIC, invalid_topic_name
from sluice.config.broker_config import refused_topic_configs
from sluice.protocol.errors import ErrorCode

from .cluster_state import ClusterState
from .replica_placement import assignment_problem, place, placement_problem


class TopicRules:
    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self._config = cluster.config
        self._random = cluster.runtime.random

    def validate(self, new: NewTopic, beside: Collection[str] = ()) -> TopicError | None:
        """Return the error of a new topic; as in Kafka, its name may collide with those `beside` it in the request."""
        if new.name == METADATA_TOPIC:  # of every release: the data directory has the metadata log of the newest one
            return TopicError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
        if new.name in self._cluster.topics:
            return TopicError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
        if (clash := self._colliding(new.name, beside)) is not None:
            return TopicError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{new.name}' collides with existing topic: {clash}"
            )
        if (problem := invalid_topic_name(new.name)) is not None:
            return TopicError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if nulls := ",".join(name for name, value in new.configs.items() if value is None):
            return TopicError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {nulls}")
        if (problem := refused_topic_configs(self._config, new.own_configs)) is not None:
            return TopicError(ErrorCode.INVALID_CONFIG, problem)
        return self._validate_size(new)

    def _validate_size(self, new: NewTopic) -> TopicError | None:
        if self.partition_count(new) > MAX_PARTITIONS:
            return EXCESSIVE_PARTITIONS
        if new.assignments:
            return self._validate_assignment(new)
        if new.replication_factor == 0 or new.replication_factor < -1:
            return TopicError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if new.num_partitions == 0 or new.num_partitions < -1:
            return TopicError(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        replication_factor = self._replication_factor(new)
        problem = self.placement_problem(replication_factor)
        if problem is None:
            return None
        message = f"Unable to replicate the partition {replication_factor} time(s): {problem}"
        return TopicError(ErrorCode.INVALID_REPLICATION_FACTOR, message)

    def _validate_assignment(self, new: NewTopic) -> TopicError | None:
        for number, name in ((new.replication_factor, "replication factor"), (new.num_partitions, "numPartitions")):
            if number != -1:
                message = f"A manual partition assignment was specified, but {name} was not set to -1."
                return TopicError(ErrorCode.INVALID_REQUEST, message)
        problem = self.assignments_problem(new.assignments, None)
        if problem is None and {index for index, _ in new.assignments} != set(range(len(new.assignments))):
            problem = "partitions should be a consecutive 0-based integer sequence"
        return None if problem is None else TopicError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)

    def _colliding(self, name: str, beside: Collection[str]) -> str | None:
        # Kafka's metric names have '_' for '.', so the metrics of two such topics would collide.
        if "." not in name and "_" not in name:
            return None
        plain = name.replace(".", "_")
        return next(
            (other for other in self._cluster.topics if other.replace(".", "_") == plain and other not in beside), None
        )

    def partition_count(self, new: NewTopic) -> int:
        if new.assignments:
            return len(new.assignments)
        return self._config.integer("num.partitions") if new.num_partitions == -1 else new.num_partitions

    def _replication_factor(self, new: NewTopic) -> int:
        return (
            self._config.integer("default.replication.factor")
            if new.replication_factor == -1
            else new.replication_factor
        )

    def assignments_problem(
        self, assignments: Iterable[tuple[int, Collection[int]]], replication_factor: int | None
    ) -> str | None:
        """Return the problem with the replicas of new partitions, if any.

        All need `replication_factor` replicas; None: as many as the first one.
        """
        assigned, registered = set[int](), self._cluster.registered
        for index, broker_ids in assignments:
            if index in assigned:
                return f"Found multiple manual partition assignments for partition {index}"
            assigned.add(index)
            problem = assignment_problem(broker_ids, registered, replication_factor)
            if problem is not None:
                return problem
            replication_factor = len(broker_ids)
            if self._cluster.fenced.issuperset(broker_ids):
                return (
                    f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                    "controlled shutdown."
                )
        return None

    def placements(self, new: NewTopic) -> list[tuple[int, ...]]:
        if new.assignments:
            return [tuple(broker_ids) for _, broker_ids in sorted(new.assignments)]
        return self.place(self.partition_count(new), self._replication_factor(new))

    def place(self, partitions: int, replication_factor: int) -> list[tuple[int, ...]]:
        cluster = self._cluster
        up = [node_id for node_id in cluster.brokers if node_id not in cluster.fenced]
        down = sorted(cluster.fenced - cluster.unregistered)
        return place(self._random, up, down, partitions, replication_factor, cluster.racks)

    def placement_problem(self, replication_factor: int) -> str | None:
        up = len(self._cluster.brokers) - len(self._cluster.fenced)
        return placement_problem(up, len(self._cluster.registered), replication_factor)
