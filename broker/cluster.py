"""What all brokers of the process share: each other, topics and partitions, and by which rules topics come and go.

Follows Kafka's ReplicationControlManager (create, delete, their checks in their order) and Topic (names). Different on
purpose: a partition has one log, not one for each replica. Its leader appends to it; of followers it is known how far
they have fetched.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)
from typing import TYPE_CHECKING, NamedTuple

from sluice.clock import Clock
from sluice.config import Config, TopicConfig, refused_topic_configs
from sluice.config_table import TOPIC_PROPERTIES
from sluice.config_values import parse_users
from sluice.errors import NotDurableError
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import CREATE_TIME, LOG_APPEND_TIME
from sluice.protocol.records.compression import NAMES as CODEC_NAMES
from sluice.protocol.records.log_validator import AppendConfig
from sluice.purgatory.timer import Timer
from sluice.quotas.quota_managers import ControllerQuotas
from sluice.quotas.store import QuotaStores

from .dispatch import AfterTurn
from .housekeeping import Housekeeping
from .log.log_config import LogConfig
from .log.log_manager import LogManager
from .log.partition_log import PartitionLog
from .quota_profile import PROFILES
from .quota_rules import RulesOfQuotas
from .random_uuid import random_uuid
from .replica_placement import assignment_problem, place, placement_problem

if TYPE_CHECKING:
    from sluice.quotas.client_quotas import ClientQuotas

    from .broker import Broker
    from .configs.client_metrics_configs import ClientMetricsConfigs
    from .configs.group_configs import GroupConfigs
    from .controller import Controller
    from .log_cleaner import LogCleaner
    from .metadata_log.durable_metadata import DurableMetadata
    from .replication import Behind
    from .security.acl import Acl
    from .security.acls import Acls
    from .security.scram_credentials import ScramCredentials

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
NO_LEADER = -1
# How often it is looked for what has been flushed, and what is to be deleted.
_DIRECTORY_TICK_MS = 1000
# How many producer ids a broker takes at once (ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE). The first begins with 0.
_PRODUCER_IDS_PER_BLOCK = 1000


class TopicError(NamedTuple):
    """Why a topic was not created, deleted or found."""

    code: ErrorCode
    message: str | None  # None: what the code says


class Traffic:
    """What passed through a topic on one broker."""

    __slots__ = ("bytes_in", "bytes_out", "records_in")

    def __init__(self) -> None:
        self.records_in = 0
        self.bytes_in = 0
        self.bytes_out = 0


class PartitionState(NamedTuple):
    """Where a partition is and who leads it: see Partition."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class Partition:
    """One partition. It is also the key under which operations wait for it.

    `replicas` are node ids, the preferred leader first; `isr` those of them that are in sync; `leader` is one of these,
    or NO_LEADER. Those to be added and removed by a reassignment are among the replicas. The epochs count changes of
    the leader, and of anything here. `behind` and `replicated_offset` are explained in replication.py.
    """

    __slots__ = (
        "adding",
        "behind",
        "deleted",
        "epoch_start_offset",
        "index",
        "isr",
        "leader",
        "leader_epoch",
        "log",
        "partition_epoch",
        "removing",
        "replicas",
        "replicas_log_start_offset",
        "replicated_offset",
        "topic",
        "traffic",
    )

    def __init__(self, topic: "Topic", index: int, log: PartitionLog, state: PartitionState) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.replicas, self.isr, self.leader, self.leader_epoch, self.partition_epoch, self.adding, self.removing = (
            state
        )
        self.traffic = topic.traffic_on(self.leader)
        self.behind: dict[int, Behind] = {}
        self.replicated_offset = log.high_watermark
        self.epoch_start_offset = log.high_watermark  # where the leader's log ended as it began to lead
        self.deleted = False
        log.begin_epoch(self.leader_epoch)
        self.replicas_log_start_offset = 0  # where the simulated replicas' logs start, as far as DeleteRecords goes

    @property
    def state(self) -> PartitionState:
        """What the metadata log has of it."""
        epochs = self.leader_epoch, self.partition_epoch
        return PartitionState(self.replicas, self.isr, self.leader, *epochs, self.adding, self.removing)

    @property
    def low_watermark(self) -> int:
        """The first offset that any replica still has: what DeleteRecords waits for."""
        start = self.log.log_start_offset
        return min(start, self.replicas_log_start_offset) if self.log.has_followers else start

    @property
    def min_isr(self) -> int:
        """How many replicas have to be in sync for acks=all: no more than there are (Partition.effectiveMinIsr)."""
        return min(self.topic.min_insync_replicas, len(self.replicas))

    def copy(self) -> "Partition":
        """Another one that is as this is now, with the same log."""
        other = Partition.__new__(Partition)
        for name in Partition.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    def epoch_error(self, current_leader_epoch: int) -> int:
        """The error for a client that believes in another leader epoch, 0 if it is right or does not say (-1)."""
        if current_leader_epoch in (-1, self.leader_epoch):
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def access_error(self, node_id: int, current_leader_epoch: int) -> int:
        """Why this broker does not read it for a client that believes in this epoch (-1: any); 0 if it does.

        A follower knows the epoch, and looks at that first (Partition.localLogWithEpochOrThrow).
        """
        if node_id == self.leader or node_id in self.replicas:
            error = self.epoch_error(current_leader_epoch)
            if error:
                return error
        return ErrorCode.NONE if node_id == self.leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def __repr__(self) -> str:
        return f"{self.topic.name}-{self.index}"


class Topic:
    """A topic: its own settings, its partitions by index, and what passed through it on each broker."""

    __slots__ = (
        "config",
        "is_internal",
        "min_insync_replicas",
        "name",
        "partitions",
        "topic_id",
        "traffic",
    )

    def __init__(self, name: str, topic_id: bytes, config: TopicConfig) -> None:
        self.name = name
        self.topic_id = topic_id  # 16 bytes (KIP-516)
        self.config = config
        self.is_internal = name in INTERNAL_TOPICS
        self.min_insync_replicas = config.integer("min.insync.replicas")
        self.partitions: list[Partition] = []
        self.traffic: dict[int, Traffic] = {}  # by the node that led when it passed

    def copy(self) -> "Topic":
        """Another one that is as this is now, and counts what passes through together with it."""
        other = Topic.__new__(Topic)
        for name in Topic.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    def traffic_on(self, node_id: int) -> Traffic:
        """What passes through the topic on this broker is counted there."""
        return self.traffic.setdefault(node_id, Traffic())

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
    """What the brokers have in common."""

    def __init__(self, config: Config, clock: Clock, random: Random) -> None:
        """Without brokers: each joins as it is made. Topics take their defaults from `config`, the first broker's."""
        self.config = config
        self.cluster_id = config.text("sluice.cluster.id")
        self.brokers: dict[int, Broker] = {}  # by node id; those that are down, too
        self.fenced: set[int] = set()  # node ids of those that the controller takes for dead
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.topics_created = 0  # since the start, those deleted again included
        self.metadata_log: DurableMetadata | None = None  # where all is in memory
        self.after_turn = AfterTurn()
        self.timer = Timer(clock)
        self.housekeeping = Housekeeping(self.timer)
        self.logs = self._open_logs(config, clock, random)
        # What was altered while it runs (KIP-226), by node id; "" is all brokers.
        self.broker_configs: dict[str, Mapping[str, str]] = {}
        self.clock = clock
        self._random = random
        self.next_producer_id = 0  # the first that no broker was given
        self.quota_stores = QuotaStores(config)
        self._rules = RulesOfQuotas(config, PROFILES[config.text("quota.profile")].empty_client_id)
        self.controller_quotas = ControllerQuotas(config, self._rules.of("ControllerMutation"), self.quota_stores)
        walked = config.integer("sluice.record.validation.max.bytes")
        # Whether a partition needs the controller from the beginning on: else from the first thing that happens.
        self._is_simple = not any(map(config.integer, ("sluice.replication.delay.ms", "sluice.metadata.lag.ms")))
        self._deep_max_bytes = None if walked < 0 else walked
        self.housekeeping.every(config.integer("log.retention.check.interval.ms"), self._enforce_retention)
        self._clean_logs_later()

    def close(self) -> None:
        """Stops time for what belongs to no broker, and closes the logs."""
        self.timer.close()
        self._rules.close()
        if self.metadata_log is not None:
            self.metadata_log.close()
        self.logs.close()

    # The brokers

    @cached_property
    def controller(self) -> "Controller":
        """Who knows which brokers live, and who leads; there when something happens to a broker or a replica."""
        from .controller import Controller  # not before: a start is not to wait for it

        return Controller(self)

    @property
    def controller_in_use(self) -> "Controller | None":
        """The same; None where nothing has happened: all brokers run, and followers have what leaders have."""
        return self.controller if "controller" in vars(self) else None

    def next_node_id(self) -> int:
        """The id of the next broker to join: they count on from node.id."""
        return self.config.integer("node.id") + len(self.brokers)

    def join(self, broker: "Broker") -> None:
        """A broker is there, for the first time or again: what was altered for it holds."""
        self.brokers[broker.node_id] = broker
        own, everybody_s = self.broker_configs.get(str(broker.node_id), {}), self.broker_configs.get("", {})
        if own or everybody_s:
            broker.config.set_dynamic(own, everybody_s)

    def high_watermark_moved(self, partition: Partition) -> None:
        """Consumers may read more, and produce requests have what they waited for."""
        leader = self.leader_of(partition)
        if leader is not None:
            leader.fetches.check_and_complete(partition)
        for broker in self.brokers.values():  # a transaction's coordinator waits for others' partitions
            broker.produces.check_and_complete(partition)

    @property
    def controller_id(self) -> int:
        """The broker to which clients send what is for the controller; in KRaft as here, any that lives will do."""
        return next((node_id for node_id in self.brokers if node_id not in self.fenced), NO_LEADER)

    def leader_of(self, partition: Partition) -> "Broker | None":
        """The broker that leads a partition, None if none does."""
        return self.brokers.get(partition.leader)

    def new_producer_ids(self, node_id: int) -> range:
        """Producer ids that no broker had before, for this one. Raises NotDurableError."""
        given = range(self.next_producer_id, self.next_producer_id + _PRODUCER_IDS_PER_BLOCK)
        if self.metadata_log is not None and self.metadata_log.producer_ids_taken(node_id, given.stop):
            raise NotDurableError("producer ids")
        self.next_producer_id = given.stop
        return given

    # What is set while it runs, once for all brokers

    @cached_property
    def client_quotas(self) -> "ClientQuotas":
        """The quotas that can be altered: each holds on every broker; loaded with the first request that asks."""
        from sluice.quotas.client_quotas import ClientQuotas

        return ClientQuotas(self.quota_stores)

    @cached_property
    def group_configs(self) -> "GroupConfigs":
        """What is set for groups."""
        from .configs.group_configs import GroupConfigs  # with the first request that is about configs

        return GroupConfigs(self.config)

    @cached_property
    def client_metrics_configs(self) -> "ClientMetricsConfigs":
        """Which metrics clients are asked for."""
        from .configs.client_metrics_configs import ClientMetricsConfigs  # as above

        return ClientMetricsConfigs()

    @cached_property
    def _log_cleaner(self) -> "LogCleaner":
        from .log_cleaner import LogCleaner  # with the first log that is compacted

        return LogCleaner(self.logs, self.config, self.clock, self.housekeeping)

    @cached_property
    def scram_credentials(self) -> "ScramCredentials":
        """What SCRAM users have, there from when one is first asked about."""
        from .security.scram_credentials import ScramCredentials  # salting takes milliseconds

        return ScramCredentials(parse_users(self.config.text("sluice.sasl.users")), self._random.randbytes)

    # Topics and partitions

    @cached_property
    def acls(self) -> "Acls":
        """The access control lists, which no broker looks at without an authorizer."""
        from .security.acls import Acls  # with the first that does

        return Acls(self._random.randbytes, self._write_acls)

    def _write_acls(self, created: "Sequence[tuple[bytes, Acl]]", deleted: Sequence[bytes]) -> ErrorCode:
        return ErrorCode.NONE if self.metadata_log is None else self.metadata_log.acls_changed(created, deleted)

    def partition(self, topic_name: str, index: int) -> Partition | None:
        """A partition by its topic's name, None where there is none."""
        topic = self.topics.get(topic_name)
        return topic.partition(index) if topic is not None else None

    def create(self, new: NewTopic, *, validate_only: bool = False) -> Topic | TopicError:
        """Creates a topic, or says why not. With `validate_only` the topic is made but kept nowhere."""
        error = self._refusal(new)
        if error is not None:
            return error
        own = _set(new.configs)
        topic = Topic(new.name, self._new_topic_id(), TopicConfig(self.config, own))
        partitions = self._led(self._placements(new))
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
        """A topic is there again, with these configs of its own, and what its logs have on disk. Raises OSError."""
        topic = Topic(name, topic_id, TopicConfig(self.config, own))
        self._extend(topic, partitions, self.logs.create)
        self._know(topic)

    def add_partitions(
        self, topic: Topic, count: int, assignments: Sequence[Collection[int]] | None = None
    ) -> TopicError | None:
        """Makes it `count` partitions in all, or says why not; the new ones are empty.

        They are placed as `assignments` says, valid as they are, or as many times as the topic's first partition.
        """
        replication_factor = len(topic.partitions[0].replicas)
        if assignments is not None:
            replicas = [tuple(brokers) for brokers in assignments]
        elif (problem := self._placement_problem(replication_factor)) is not None:
            return TopicError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
        else:
            replicas = self._place(count - len(topic.partitions), replication_factor)
        first = len(topic.partitions)
        error = self._store(topic, self._led(replicas))
        if error is None:
            self._begin(topic.partitions[first:])
        return error

    def refused_assignments(
        self, assignments: Iterable[Collection[int]], replication_factor: int | None, first_index: int
    ) -> str | None:
        """What is wrong with the brokers of partitions from `first_index` on, which all have to be as many; else None.

        `replication_factor` is how many they are already, None where that is open.
        """
        for index, broker_ids in enumerate(assignments, first_index):
            problem = assignment_problem(broker_ids, self.brokers.keys(), replication_factor)
            if problem is not None:
                return problem
            replication_factor = len(broker_ids)
            if self.fenced.issuperset(broker_ids):
                return (
                    f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                    "controlled shutdown."
                )
        return None

    def configure(self, topic: Topic, own: Mapping[str, str]) -> None:
        """Gives a topic other configs of its own, or the broker's new defaults; its open logs follow at once."""
        topic.config = TopicConfig(self.config, own)
        topic.min_insync_replicas = topic.config.integer("min.insync.replicas")
        for partition in topic.partitions:
            partition.log.update_config(self._log_config(topic.config, partition.log.name))
        if self.controller_in_use is not None:
            self.controller.configured(topic)

    def auto_create(self, name: str) -> Topic | TopicError:
        """Creates a topic that a client asked for by name, with the broker's defaults."""
        return self.create(NewTopic(name))

    def internal_topic(self, name: str) -> Topic:
        """One of Kafka's own topics, created when it is first asked for, as in Kafka with its settings there.

        Raises NotDurableError.
        """
        topic = self.topics.get(name)
        if topic is None:
            prefix = _internal_prefix(name)
            partitions = self.config.integer(f"{prefix}.num.partitions")
            configs = self._internal_configs(name)
            created = self.create(NewTopic(name, partitions, self._internal_replicas(prefix), configs=configs))
            if isinstance(created, TopicError):
                assert created.code == ErrorCode.KAFKA_STORAGE_ERROR, created
                raise NotDurableError(name)
            topic = created
        return topic

    def _internal_configs(self, name: str) -> dict[str, str]:
        return {
            "cleanup.policy": "compact",
            "compression.type": "producer" if name == GROUP_METADATA_TOPIC else "uncompressed",
            "segment.bytes": str(self.config.integer(f"{_internal_prefix(name)}.segment.bytes")),
        }

    def adopt(self, found: Iterable[tuple[str, bytes | None, Sequence[int]]]) -> ErrorCode:
        """Takes topics that the data directory has, with the broker's defaults: nothing says what was set on them.

        Of each the name, the id if it is known, and its partitions' leader epochs. Raises OSError, SluiceError.
        """
        topics: list[tuple[Topic, Sequence[PartitionState]]] = []
        for name, topic_id, leader_epochs in found:
            own = self._internal_configs(name) if name in INTERNAL_TOPICS else {}
            placed = self._led(self._place(len(leader_epochs), 1))
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
        """Forgets a topic and its records, or says why not. What waits for its partitions the caller completes."""
        failed = ErrorCode.NONE if self.metadata_log is None else self.metadata_log.topic_deleted(topic.topic_id)
        if failed:
            return failed
        del self.topics[topic.name]
        del self.topics_by_id[topic.topic_id]
        self._delete_logs(topic)
        return ErrorCode.NONE

    def _delete_logs(self, topic: Topic) -> None:
        for partition in topic.partitions:
            partition.deleted = True
            self.logs.delete(partition.log.name)
            if self.controller_in_use is not None:
                self.controller.publisher.partition_deleted(partition)

    def _store(self, topic: Topic, partitions: Sequence[PartitionState]) -> TopicError | None:
        """Makes the logs of a topic's new partitions, and makes durable that there are such; or neither, and says why.

        What is there of logs when the process dies is nobody's (stored_topics).
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
        self._begin(topic.partitions)  # first: a controller that begins here takes what is known for what all know
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic

    def _led(self, placements: Iterable[tuple[int, ...]]) -> list[PartitionState]:
        """New partitions on these brokers: those that live are in sync, and the first of them leads."""
        partitions = []
        for replicas in placements:
            isr = tuple(node_id for node_id in replicas if node_id not in self.fenced)
            partitions.append(PartitionState(replicas, isr, isr[0]))
        return partitions

    def _begin(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            if not self._is_simple or len(partition.isr) < len(partition.replicas):
                self.controller.created(partition)

    def _extend(
        self,
        topic: Topic,
        partitions: Iterable[PartitionState],
        new_log: Callable[[str, LogConfig, bytes], PartitionLog],
    ) -> None:
        for index, state in enumerate(partitions, len(topic.partitions)):
            name = f"{topic.name}-{index}"
            log = new_log(name, self._log_config(topic.config, name), topic.topic_id)
            partition = Partition(topic, index, log, state)
            log.has_followers = False
            topic.partitions.append(partition)

    def _internal_replicas(self, prefix: str) -> int:
        """As many as are configured, where there are so many brokers: one alone takes a Kafka's file as it is."""
        return min(self.config.integer(f"{prefix}.replication.factor"), len(self.brokers))

    def _placements(self, new: NewTopic) -> list[tuple[int, ...]]:
        if new.assignments:
            return [tuple(new.assignments[index]) for index in range(len(new.assignments))]
        return self._place(self.partition_count(new), self._replication_factor(new))

    def _place(self, partitions: int, replication_factor: int) -> list[tuple[int, ...]]:
        up = [node_id for node_id in self.brokers if node_id not in self.fenced]
        return place(self._random, up, sorted(self.fenced), partitions, replication_factor)

    def _placement_problem(self, replication_factor: int) -> str | None:
        registered = len(self.brokers)
        return placement_problem(registered - len(self.fenced), registered, replication_factor)

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
        problem = self._placement_problem(self._replication_factor(new))
        return None if problem is None else TopicError(ErrorCode.INVALID_REPLICATION_FACTOR, problem)

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
        in_order = [new.assignments[index] for index in range(len(new.assignments))]
        problem = self.refused_assignments(in_order, None, 0)
        return None if problem is None else TopicError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)

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
                compression_level=_compression_level(config),
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
            segment_ms=config.integer("segment.ms"),
            segment_jitter_ms=config.integer("segment.jitter.ms"),
            delete_retention_ms=config.integer("delete.retention.ms"),
            min_cleanable_dirty_ratio=config.number("min.cleanable.dirty.ratio"),
            min_compaction_lag_ms=config.integer("min.compaction.lag.ms"),
            max_compaction_lag_ms=config.integer("max.compaction.lag.ms"),
            file_delete_delay_ms=config.integer("file.delete.delay.ms"),
            flush_messages=config.integer("flush.messages"),
            flush_ms=config.integer("flush.ms"),
            index_interval_bytes=config.integer("index.interval.bytes"),
            segment_index_bytes=config.integer("segment.index.bytes"),
            producer_id_expiration_ms=self.config.integer("producer.id.expiration.ms"),
        )

    def _new_topic_id(self) -> bytes:
        while (topic_id := random_uuid(self._random.randbytes)) in self.topics_by_id:
            pass
        return topic_id

    def _open_logs(self, config: Config, clock: Clock, random: Random) -> LogManager:
        memory_bytes, path = config.integer("sluice.log.memory.bytes"), config.text("log.dirs")
        if not path:
            return LogManager(memory_bytes)
        from .log.disk.log_directory import LogDirectory, Owner  # only those who have one wait for it

        takes_cluster_id = config.origin("sluice.cluster.id") == "default"
        owner = Owner(self.cluster_id, config.integer("node.id"), takes_cluster_id)
        directory = LogDirectory(path, owner, clock.wall_ms, random.randbytes)
        self.cluster_id = directory.cluster_id
        every = self.housekeeping.every
        every(_DIRECTORY_TICK_MS, directory.tick)
        every(config.integer("log.flush.scheduler.interval.ms"), directory.flush_due)
        every(config.integer("log.flush.offset.checkpoint.interval.ms"), directory.checkpoint)
        every(config.integer("log.flush.start.offset.checkpoint.interval.ms"), directory.save_log_starts)
        return LogManager(memory_bytes, directory)

    def _enforce_retention(self) -> None:
        now_ms = self.clock.wall_ms()
        self.logs.enforce_retention(now_ms)
        self.logs.expire_producers(now_ms)

    def _clean_logs_later(self) -> None:
        self.housekeeping.later(max(self.config.integer("log.cleaner.backoff.ms"), 1), self._clean_logs)

    def _clean_logs(self) -> None:
        self._clean_logs_later()
        enabled = self.config.boolean("log.cleaner.enable")
        if enabled and any(log.config.append.compacted for log in self.logs):
            self._log_cleaner.start()


def _compression_level(config: TopicConfig) -> int | None:
    """Of the topic's codec; None: it has no levels, or the level is that which it has by default."""
    name = f"compression.{config.text('compression.type')}.level"
    row = TOPIC_PROPERTIES.get(name)
    if row is None:
        return None
    level = config.integer(name)
    return None if str(level) == row.default else level


def _internal_prefix(name: str) -> str:
    return "offsets.topic" if name == GROUP_METADATA_TOPIC else "transaction.state.log"


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
