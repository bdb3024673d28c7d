"""What the broker holds: itself, its topics and partitions, and the rules by which topics come and go.

Follows Kafka's ReplicationControlManager (create, delete, their checks in their order) and Topic (names). One broker
leads every partition.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple

from sluice.config import Config, TopicConfig, refused_topic_configs
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import CREATE_TIME, LOG_APPEND_TIME
from sluice.protocol.records.compression import NAMES as CODEC_NAMES
from sluice.protocol.records.log_validator import AppendConfig

from .log.log_config import LogConfig
from .log.log_manager import LogManager
from .log.partition_log import PartitionLog
from .random_uuid import random_uuid

# Kafka's Topic.MAX_NAME_LENGTH: leaves room for "-<partition>" in a file name of 255 bytes.
MAX_TOPIC_NAME_CHARS = 249
_LEGAL_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_TIMESTAMP_TYPES = {"CreateTime": CREATE_TIME, "LogAppendTime": LOG_APPEND_TIME}
# compression.type -> codec; None keeps what the producer chose.
_CODECS: dict[str, int | None] = {name: codec for codec, name in enumerate(CODEC_NAMES)}
_CODECS |= {"producer": None, "uncompressed": 0}
# Topics that Kafka keeps for itself, in which its coordinators write down what they know: clients are told so.
GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})


class TopicError(NamedTuple):
    """Why a topic was not created, deleted or found."""

    code: ErrorCode
    message: str | None  # None: what the code says


class Partition:
    """One partition, led by this broker. It is also the key under which operations wait for it."""

    __slots__ = ("deleted", "index", "leader_epoch", "log", "replicas_log_start_offset", "topic")

    def __init__(self, topic: "Topic", index: int, log: PartitionLog) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.leader_epoch = 0
        self.deleted = False
        log.begin_epoch(self.leader_epoch)
        self.replicas_log_start_offset = 0  # where the simulated replicas' logs start, as far as DeleteRecords goes

    @property
    def low_watermark(self) -> int:
        """The first offset that any replica still has: what DeleteRecords waits for."""
        start = self.log.log_start_offset
        return min(start, self.replicas_log_start_offset) if self.log.has_followers else start

    def epoch_error(self, current_leader_epoch: int) -> int:
        """The error for a client that believes in another leader epoch, 0 if it is right or does not say (-1)."""
        if current_leader_epoch in (-1, self.leader_epoch):
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def __repr__(self) -> str:
        return f"{self.topic.name}-{self.index}"


class Topic:
    """A topic: its own settings, its partitions by index, and what passed through it."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "config",
        "is_internal",
        "min_insync_replicas",
        "name",
        "partitions",
        "records_in",
        "topic_id",
    )

    def __init__(self, name: str, topic_id: bytes, config: TopicConfig) -> None:
        self.name = name
        self.topic_id = topic_id  # 16 bytes (KIP-516)
        self.config = config
        self.is_internal = name in INTERNAL_TOPICS
        self.min_insync_replicas = config.integer("min.insync.replicas")
        self.partitions: list[Partition] = []
        self.records_in = 0
        self.bytes_in = 0
        self.bytes_out = 0

    def partition(self, index: int) -> Partition | None:
        """The partition of that index, None where there is none."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


class NewTopic(NamedTuple):
    """What a topic to be created should be. -1 partitions or replicas: the broker's default (KIP-464)."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Collection[int]] = {}  # partition -> broker ids; excludes the two numbers above
    configs: Mapping[str, str | None] = {}


class Cluster:
    """All topics of the one broker."""

    def __init__(self, config: Config, logs: LogManager, random_bytes: Callable[[int], bytes]) -> None:
        """`random_bytes(n)` makes topic ids: n bytes from the broker's seeded source."""
        self.config = config
        self.cluster_id = config.text("sluice.cluster.id")
        self.node_id = config.integer("node.id")
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.topics_created = 0  # since the start, those deleted again included
        self._logs = logs
        self._random_bytes = random_bytes
        walked = config.integer("sluice.record.validation.max.bytes")
        self._has_followers = config.integer("sluice.replication.delay.ms") > 0  # else they have all at once
        self._deep_max_bytes = None if walked < 0 else walked

    def partition(self, topic_name: str, index: int) -> Partition | None:
        """A partition by its topic's name, None where there is none."""
        topic = self.topics.get(topic_name)
        return topic.partition(index) if topic is not None else None

    def create(self, new: NewTopic, *, validate_only: bool = False) -> Topic | TopicError:
        """Creates a topic, or says why not. With `validate_only` the topic is made but kept nowhere."""
        error = self._refusal(new)
        if error is not None:
            return error
        topic = Topic(new.name, self._new_topic_id(), TopicConfig(self.config, _set(new.configs)))
        # A log takes no memory before its first record; one that is only for validation is never registered.
        new_log = partial(PartitionLog, budget=self._logs.budget) if validate_only else self._logs.create
        self._extend(topic, self.partition_count(new), new_log)
        if not validate_only:
            self.topics[topic.name] = topic
            self.topics_by_id[topic.topic_id] = topic
            self.topics_created += 1
        return topic

    def add_partitions(self, topic: Topic, count: int) -> None:
        """Makes it `count` partitions in all; the new ones are empty."""
        self._extend(topic, count, self._logs.create)

    def configure(self, topic: Topic, own: Mapping[str, str]) -> None:
        """Gives a topic other configs of its own, or the broker's new defaults; its open logs follow at once."""
        topic.config = TopicConfig(self.config, own)
        topic.min_insync_replicas = topic.config.integer("min.insync.replicas")
        for partition in topic.partitions:
            partition.log.update_config(self._log_config(topic.config, partition.log.name))

    def auto_create(self, name: str) -> Topic | TopicError:
        """Creates a topic that a client asked for by name, with the broker's defaults."""
        return self.create(NewTopic(name))

    def internal_topic(self, name: str) -> Topic:
        """One of Kafka's own topics, created when it is first asked for, as in Kafka with its settings there."""
        topic = self.topics.get(name)
        if topic is None:
            config = self.config
            of_groups = name == GROUP_METADATA_TOPIC
            prefix = "offsets.topic" if of_groups else "transaction.state.log"
            compression = "producer" if of_groups else "uncompressed"
            configs = {
                "cleanup.policy": "compact",
                "compression.type": compression,
                "segment.bytes": str(config.integer(f"{prefix}.segment.bytes")),
            }
            created = self.create(NewTopic(name, config.integer(f"{prefix}.num.partitions"), 1, configs=configs))
            assert isinstance(created, Topic), created
            topic = created
        return topic

    def delete(self, topic: Topic) -> None:
        """Forgets a topic and its records. What waits for its partitions is the caller's to complete."""
        del self.topics[topic.name]
        del self.topics_by_id[topic.topic_id]
        for partition in topic.partitions:
            partition.deleted = True
            self._logs.delete(partition.log.name)

    def _extend(self, topic: Topic, count: int, new_log: Callable[[str, LogConfig], PartitionLog]) -> None:
        for index in range(len(topic.partitions), count):
            name = f"{topic.name}-{index}"
            log = new_log(name, self._log_config(topic.config, name))
            log.has_followers = self._has_followers
            topic.partitions.append(Partition(topic, index, log))

    def _refusal(self, new: NewTopic) -> TopicError | None:
        if (problem := invalid_topic_name(new.name)) is not None:
            return TopicError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if new.name in self.topics:
            return TopicError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
        if (clash := self._colliding(new.name)) is not None:
            return TopicError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{new.name}' collides with existing topic: {clash}"
            )
        for name, value in new.configs.items():
            if value is None:
                return TopicError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
        if (problem := refused_topic_configs(self.config, _set(new.configs))) is not None:
            return TopicError(ErrorCode.INVALID_CONFIG, problem)
        return self._refused_shape(new)

    def _refused_shape(self, new: NewTopic) -> TopicError | None:
        if new.assignments:
            return self._refused_assignment(new)
        if new.replication_factor == 0 or new.replication_factor < -1:
            return TopicError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if new.num_partitions == 0 or new.num_partitions < -1:
            return TopicError(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        if self._replication_factor(new) > 1:
            return TopicError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {self._replication_factor(new)} time(s): "
                "The target replication factor cannot be reached because only 1 broker(s) are registered.",
            )
        return None

    def _refused_assignment(self, new: NewTopic) -> TopicError | None:
        if new.replication_factor != -1 or new.num_partitions != -1:
            return TopicError(
                ErrorCode.INVALID_REQUEST,
                "A manual partition assignment was specified, but numPartitions or replicationFactor was not -1.",
            )
        if sorted(new.assignments) != list(range(len(new.assignments))):
            return TopicError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
            )
        for brokers in new.assignments.values():
            if (problem := assignment_problem(brokers, self.node_id)) is not None:
                return TopicError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
        return None

    def _colliding(self, name: str) -> str | None:
        # Metric names turn '.' into '_', so two such topics would share theirs.
        if "." not in name and "_" not in name:
            return None
        plain = name.replace(".", "_")
        return next((other for other in self.topics if other.replace(".", "_") == plain), None)

    def partition_count(self, new: NewTopic) -> int:
        """How many partitions it would have; not positive where it asks for what cannot be."""
        if new.assignments:
            return len(new.assignments)
        return self.config.integer("num.partitions") if new.num_partitions == -1 else new.num_partitions

    def _replication_factor(self, new: NewTopic) -> int:
        return (
            self.config.integer("default.replication.factor")
            if new.replication_factor == -1
            else new.replication_factor
        )

    def _log_config(self, config: TopicConfig, name: str) -> LogConfig:
        return LogConfig(
            append=AppendConfig(
                max_message_bytes=config.integer("max.message.bytes"),
                timestamp_type=_TIMESTAMP_TYPES[config.text("message.timestamp.type")],
                compression=_CODECS[config.text("compression.type")],
                before_max_ms=config.integer("message.timestamp.before.max.ms"),
                after_max_ms=config.integer("message.timestamp.after.max.ms"),
                compacted="compact" in config.names("cleanup.policy"),
                deep_max_bytes=self._deep_max_bytes,
                partition=name,
            ),
            segment_bytes=config.segment_bytes(),
            retention_bytes=config.integer("retention.bytes"),
            retention_ms=config.integer("retention.ms"),
            cleanup_deletes="delete" in config.names("cleanup.policy"),
            producer_id_expiration_ms=self.config.integer("producer.id.expiration.ms"),
        )

    def _new_topic_id(self) -> bytes:
        while (topic_id := random_uuid(self._random_bytes)) in self.topics_by_id:
            pass
        return topic_id


def _set(configs: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if value is not None}


def invalid_topic_name(name: str) -> str | None:
    """What is wrong with a topic's name (Kafka's Topic.validate), None if nothing is."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in {".", ".."}:
        return "Topic name is invalid: '.' or '..' is not allowed"
    if len(name) > MAX_TOPIC_NAME_CHARS:
        allowed = f"the max allowed length {MAX_TOPIC_NAME_CHARS}"
        return f"Topic name is invalid: the length of '{name}' is longer than {allowed}"
    if _LEGAL_TOPIC_NAME.fullmatch(name) is None:
        legal = "ASCII alphanumerics, '.', '_' and '-'"
        return f"Topic name is invalid: '{name}' contains one or more characters other than {legal}"
    return None


def assignment_problem(broker_ids: Collection[int], node_id: int) -> str | None:
    """What is wrong with the brokers that a partition is to have (validateManualPartitionAssignment), else None."""
    if not broker_ids:
        return "The manual partition assignment includes an empty replica list."
    for broker_id in sorted(broker_ids):
        if broker_id != node_id:
            return f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
    if len(broker_ids) > 1:
        return f"The manual partition assignment includes the broker {node_id} more than once."
    return None
