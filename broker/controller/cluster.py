"""The topics of the cluster, their logs, and the controller.

Follows Kafka's ReplicationControlManager (create, add partitions, delete). With a metadata log, changes are durable
before they take effect.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

from sluice.broker.log.cleaner.log_cleaner import LogCleaner
from sluice.broker.log.log_config import LogConfig, log_settings
from sluice.broker.log.log_manager import LogManager
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.new_topic import NewTopic, TopicError
from sluice.broker.metadata.topic import (
    COORDINATOR_TOPICS,
    GROUP_METADATA_TOPIC,
    NO_LEADER,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
    Partition,
    PartitionState,
    Topic,
)
from sluice.broker.on_demand import OnDemand
from sluice.broker.requests.runtime import Runtime
from sluice.config.broker_config import TopicConfig
from sluice.errors import NotDurableError
from sluice.protocol.errors import ErrorCode
from sluice.protocol.uuids import random_uuid

from .cluster_state import ClusterState
from .controller import Controller
from .topic_validation import TopicRules

_DIRECTORY_TICK_MS = 1000
_FLUSH_CHECK_MS = 1000  # if log.flush.scheduler.interval.ms is not set
# The prefix of the properties of each coordinator's topic.
_INTERNAL_PREFIXES = {
    GROUP_METADATA_TOPIC: "offsets.topic",
    TRANSACTION_STATE_TOPIC: "transaction.state.log",
    SHARE_GROUP_STATE_TOPIC: "share.coordinator.state.topic",
}


class Cluster(ClusterState):
    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        config, scheduler = runtime.config, runtime.scheduler
        self.cluster_id = config.text("sluice.cluster.id")
        self.logs = self._open_logs()
        self.rules = TopicRules(self)
        scheduler.schedule(
            config.integer("log.retention.check.interval.ms"),
            lambda: self.logs.enforce_retention(runtime.clock.wall_ms()),
            config.integer("log.initial.task.delay.ms"),
        )
        scheduler.schedule(
            config.integer("producer.id.expiration.check.interval.ms"),
            lambda: self.logs.expire_producers(runtime.clock.wall_ms()),
        )
        self._clean_logs_later()

    def close(self) -> None:
        super().close()
        self.logs.close()

    # -- the controller ------------------------------------------------------------------------------------------------

    @OnDemand
    def controller(self) -> Controller:
        """Make the controller when a broker or replica first changes its state."""
        return Controller(self)

    @property
    def is_controller_unavailable(self) -> bool:
        controller = Cluster.controller.if_made(self)
        return controller is not None and controller.is_unavailable

    @property
    def controller_id(self) -> int:
        return NO_LEADER if self.is_controller_unavailable else self.metadata.controller_id

    @property
    def quorum_leader_id(self) -> int:
        return self.config.integer("node.id")

    def unregister(self, node_id: int) -> ErrorCode:
        """Remove the registration of a broker, which registers again when it starts."""
        failed = ErrorCode.NONE if self.metadata_log is None else self.metadata_log.broker_unregistered(node_id)
        if not failed:
            self.unregistered.add(node_id)
            self.controller.unregistered(node_id)
        return failed

    def replica_end(self, partition: Partition, node_id: int) -> int:
        controller = Cluster.controller.if_made(self)
        return (
            partition.log.log_end_offset if controller is None else controller.replication.offset_of(partition, node_id)
        )

    def replicate(self, partition: Partition) -> None:
        """Let the followers of a partition fetch what was appended."""
        self.controller.replication.appended(partition)

    # -- topics and partitions -----------------------------------------------------------------------------------------

    def create(self, new: NewTopic, *, validate_only: bool = False, beside: Collection[str] = ()) -> Topic | TopicError:
        """Create a topic; `beside` are the topics that the same request has created."""
        error = self.rules.validate(new, beside)
        if error is not None:
            return error
        own = new.own_configs
        topic = Topic(new.name, self._new_topic_id(), TopicConfig(self.config, own))
        partitions = self._led(self.rules.placements(new))
        if validate_only:
            self._extend(topic, partitions, self.logs.new)
            return topic
        error = self._store(topic, partitions)
        if error is not None:
            return error
        self._know(topic)
        self.topics_created += 1
        return topic

    def restore(self, name: str, topic_id: bytes, own: Mapping[str, str], partitions: Sequence[PartitionState]) -> None:
        topic = Topic(name, topic_id, TopicConfig(self.config, own))
        self._extend(topic, partitions, self.logs.create)
        self._know(topic)

    def add_partitions(
        self, topic: Topic, count: int, assignments: Sequence[Collection[int]] | None = None
    ) -> TopicError | None:
        """Extend a topic to `count` partitions, or return an error.

        Without `assignments`, partitions have as many replicas as the first one.
        """
        first = len(topic.partitions)
        if assignments is not None:
            replicas = [tuple(brokers) for brokers in assignments]
        else:
            replicas = self.rules.place(count - first, len(topic.partitions[0].replicas))
        error = self._store(topic, self._led(replicas))
        if error is None:
            self._begin(topic.partitions[first:])
        return error

    def configure(self, topic: Topic, own: Mapping[str, str]) -> None:
        topic.configure(TopicConfig(self.config, own))
        settings = log_settings(topic.config, self.config)
        for partition in topic.partitions:
            partition.log.update_config(settings)
        controller = Cluster.controller.if_made(self)
        if controller is not None:
            controller.configured(topic)

    def auto_create(self, new: NewTopic) -> Topic | TopicError:
        if self.is_controller_unavailable:
            return TopicError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
        return self._create_internal(new.name) if new.name in COORDINATOR_TOPICS else self.create(new)

    def internal_topic(self, name: str) -> Topic:
        """Return one of Kafka's internal topics, created on first use. Raises NotDurableError."""
        topic = self.topics.get(name) or self._create_internal(name)
        if isinstance(topic, TopicError):
            raise NotDurableError(name)
        return topic

    def _create_internal(self, name: str) -> Topic | TopicError:
        prefix = _INTERNAL_PREFIXES[name]
        partitions = self.config.integer(f"{prefix}.num.partitions")
        replicas = self._internal_replicas(prefix)
        return self.create(NewTopic(name, partitions, replicas, configs=self._internal_configs(name)))

    def _internal_configs(self, name: str) -> dict[str, str]:
        prefix = _INTERNAL_PREFIXES[name]
        segment_bytes = str(self.config.integer(f"{prefix}.segment.bytes"))
        if name == SHARE_GROUP_STATE_TOPIC:  # the share coordinator deletes old records
            return {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": self._internal_min_isr(prefix),
                "retention.ms": "-1",
                "segment.bytes": segment_bytes,
            }
        configs = {"cleanup.policy": "compact", "segment.bytes": segment_bytes}
        if name == GROUP_METADATA_TOPIC:
            return {**configs, "compression.type": "producer"}
        return {
            **configs,
            "compression.type": "uncompressed",
            "min.insync.replicas": self._internal_min_isr(prefix),
            "unclean.leader.election.enable": "false",
        }

    def import_topics(self, found: Iterable[tuple[str, bytes | None, Sequence[int]]]) -> ErrorCode:
        """Create topics from the logs in the data directory, with the broker's default configs.

        Raises OSError, or SluiceError for an invalid log.
        """
        topics: list[tuple[Topic, Sequence[PartitionState]]] = []
        for name, topic_id, leader_epochs in found:
            own = self._internal_configs(name) if name in COORDINATOR_TOPICS else {}
            placed = self._led(self.rules.place(len(leader_epochs), 1))
            partitions = [
                state._replace(leader_epoch=epoch) for state, epoch in zip(placed, leader_epochs, strict=True)
            ]
            topics.append((Topic(name, topic_id or self._new_topic_id(), TopicConfig(self.config, own)), partitions))
        failed = ErrorCode.NONE if self.metadata_log is None else self.metadata_log.topics_created(topics)
        if not failed:
            for topic, states in topics:
                self._extend(topic, states, self.logs.create)
                self._know(topic)
        return failed

    def delete(self, topic: Topic) -> ErrorCode:
        failed = ErrorCode.NONE if self.metadata_log is None else self.metadata_log.topic_deleted(topic.topic_id)
        if failed:
            return failed
        self.metadata_generation += 1
        del self.topics[topic.name]
        del self.topics_by_id[topic.topic_id]
        self._delete_logs(topic)
        return ErrorCode.NONE

    def _delete_logs(self, topic: Topic) -> None:
        controller = Cluster.controller.if_made(self)
        for partition in topic.partitions:
            partition.deleted = True
            self.logs.delete(partition.log.name)
            if controller is not None:
                controller.deleted(partition)

    def _store(self, topic: Topic, partitions: Sequence[PartitionState]) -> TopicError | None:
        """Create the logs of new partitions and write the partitions to the metadata log, both or none.

        If the process dies in between, the logs are stray (server/log_dir_recovery.py).
        """
        first = len(topic.partitions)
        try:
            self._extend(topic, partitions, self.logs.create)
            error = self._write_partitions(topic, first, partitions)
        except OSError as failure:
            error = TopicError(ErrorCode.KAFKA_STORAGE_ERROR, f"{failure.filename}: {failure.strerror}")
        if error is not None:
            for partition in topic.partitions[first:]:
                self.logs.delete(partition.log.name)
            del topic.partitions[first:]
        return error

    def _write_partitions(self, topic: Topic, first: int, partitions: Sequence[PartitionState]) -> TopicError | None:
        if self.metadata_log is None:
            return None
        if topic.topic_id in self.topics_by_id:
            failed = self.metadata_log.partitions_added(topic.topic_id, first, partitions)
        else:
            failed = self.metadata_log.topics_created([(topic, partitions)])
        return TopicError(failed, None) if failed else None

    def _know(self, topic: Topic) -> None:
        self._begin(topic.partitions)  # first: a new controller considers existing topics as published
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic

    def _led(self, placements: Iterable[tuple[int, ...]]) -> list[PartitionState]:
        partitions = []
        for replicas in placements:
            isr = tuple(node_id for node_id in replicas if node_id not in self.fenced)
            partitions.append(PartitionState(replicas, isr, isr[0]))
        return partitions

    def _begin(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            if not self.is_simple or len(partition.isr) < len(partition.replicas):
                self.controller.created(partition)

    def _extend(
        self,
        topic: Topic,
        partitions: Iterable[PartitionState],
        new_log: Callable[[str, LogConfig, bytes], PartitionLog],
    ) -> None:
        settings = log_settings(topic.config, self.config)
        for index, state in enumerate(partitions, len(topic.partitions)):
            log = new_log(f"{topic.name}-{index}", settings, topic.topic_id)
            log.begin_epoch(state.leader_epoch)
            log.has_followers = False
            traffic, offset = topic.traffic_on(state.leader), log.high_watermark
            topic.partitions.append(Partition(topic, index, log, *state, traffic, offset, offset))
        self.metadata_generation += 1

    def _internal_replicas(self, prefix: str) -> int:
        return min(self.config.integer(f"{prefix}.replication.factor"), len(self.brokers))

    def _internal_min_isr(self, prefix: str) -> str:
        # As many replicas may fail as with the configured number, which Kafka requires and a small cluster lacks.
        lacking = self.config.integer(f"{prefix}.replication.factor") - self._internal_replicas(prefix)
        return str(max(1, self.config.integer(f"{prefix}.min.isr") - lacking))

    def _new_topic_id(self) -> bytes:
        while (topic_id := random_uuid(self.runtime.random.randbytes)) in self.topics_by_id:
            pass
        return topic_id

    @cached_property
    def _log_cleaner(self) -> LogCleaner:
        return LogCleaner(self.logs, self.config, self.runtime.clock, self.runtime.scheduler)

    def _open_logs(self) -> LogManager:
        config, runtime = self.config, self.runtime
        memory_bytes, path = config.integer("sluice.log.memory.bytes"), config.text("log.dirs")
        if not path:
            return LogManager(memory_bytes)
        from sluice.broker.log.disk.log_directory import LogDirectory
        from sluice.broker.log.disk.meta_properties import Owner

        adopts_cluster_id = config.origin("sluice.cluster.id") == "default"
        owner = Owner(self.cluster_id, config.integer("node.id"), adopts_cluster_id)
        directory = LogDirectory(path, owner, runtime.clock.wall_ms, runtime.random.randbytes)
        self.cluster_id = directory.cluster_id
        schedule = runtime.scheduler.schedule
        schedule(_DIRECTORY_TICK_MS, directory.tick)
        flush_check = "log.flush.scheduler.interval.ms"
        flush_check_ms = config.integer(flush_check) if config.is_set(flush_check) else _FLUSH_CHECK_MS
        schedule(flush_check_ms, directory.flush_due)
        first_ms = config.integer("log.initial.task.delay.ms")
        schedule(config.integer("log.flush.offset.checkpoint.interval.ms"), directory.checkpoint, first_ms)
        schedule(config.integer("log.flush.start.offset.checkpoint.interval.ms"), directory.save_log_starts, first_ms)
        return LogManager(memory_bytes, directory)

    def _clean_logs_later(self) -> None:
        self.runtime.scheduler.schedule_once(max(self.config.integer("log.cleaner.backoff.ms"), 1), self._clean_logs)

    def _clean_logs(self) -> None:
        self._clean_logs_later()
        enabled = self.config.boolean("log.cleaner.enable")
        if enabled and any(log.config.append.compacted for log in self.logs):
            self._log_cleaner.start()
