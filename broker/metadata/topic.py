"""A topic and its partitions, shared by all brokers of the cluster.

Follows Kafka's Partition and TopicImage. Different on purpose: a partition has one log; a follower is only an offset
(replication.py).
"""

import re
from typing import NamedTuple

from msgspec import Struct

from sluice.broker.log.partition_log import PartitionLog
from sluice.config.broker_config import TopicConfig
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.purgatory import DelayedOperationPurgatory

# Kafka's internal topics, marked as such in metadata.
GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
COORDINATOR_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})
# The journal as a topic (journal_topic.py), also read-only for clients.
JOURNAL_TOPIC = "__sluice_journal"
INTERNAL_TOPICS = COORDINATOR_TOPICS | {JOURNAL_TOPIC}
METADATA_TOPIC = "__cluster_metadata"  # of DescribeQuorum; no topic can have this name, as its log is the metadata log
NO_LEADER = -1
# Kafka's Topic.MAX_NAME_LENGTH: leaves room for "-<partition>" in a file name of 255 bytes.
MAX_TOPIC_NAME_CHARS = 249


class Traffic:
    __slots__ = ("bytes_in", "bytes_out", "records_in")  # not a Struct, whose fields are written more slowly

    def __init__(self) -> None:
        self.records_in = 0
        self.bytes_in = 0
        self.bytes_out = 0


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class PartitionState(NamedTuple):
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class FollowerLag(NamedTuple):
    offset: int
    since_ms: float
    target: int | None = None


class Partition(Struct, eq=False):
    """One partition, which is also the key for operations that wait for it.

    `replicas` are node ids, the preferred leader first, including those that a reassignment adds or removes. `isr` are
    the in-sync ones; `leader` is one of these, or NO_LEADER. `leader_epoch` counts leader changes, `partition_epoch`
    all changes.
    """

    topic: "Topic"
    index: int
    log: PartitionLog
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    traffic: Traffic
    replicated_offset: int
    epoch_start_offset: int  # the log end offset when the leader was elected
    lagging_followers: dict[int, FollowerLag] = {}
    follower_fetches: tuple[DelayedOperationPurgatory, ...] = ()  # of followers on which consumers' fetches wait
    deleted: bool = False
    replicas_log_start_offset: int = 0  # of the simulated replicas, for DeleteRecords

    @property
    def state(self) -> PartitionState:
        epochs = self.leader_epoch, self.partition_epoch
        return PartitionState(self.replicas, self.isr, self.leader, *epochs, self.adding, self.removing)

    @property
    def low_watermark(self) -> int:
        """Smallest log start offset of all replicas, for DeleteRecords."""
        start = self.log.log_start_offset
        return min(start, self.replicas_log_start_offset) if self.log.has_followers else start

    @property
    def min_isr(self) -> int:
        """In-sync replicas required for acks=all (Partition.effectiveMinIsr)."""
        return min(self.topic.min_insync_replicas, len(self.replicas))

    def epoch_error(self, current_leader_epoch: int) -> int:
        """Return the error for this leader epoch (-1: unknown), or 0."""
        if current_leader_epoch in (-1, self.leader_epoch):
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def access_error(self, node_id: int, current_leader_epoch: int) -> int:
        """Return the error for a read on this broker, or 0; a replica checks the epoch first, as in Kafka."""
        if node_id == self.leader or node_id in self.replicas:
            error = self.epoch_error(current_leader_epoch)
            if error:
                return error
        return ErrorCode.NONE if node_id == self.leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def __repr__(self) -> str:
        return f"{self.topic.name}-{self.index}"


class Topic(Struct, eq=False):
    name: str
    topic_id: bytes  # 16 bytes (KIP-516)
    config: TopicConfig
    partitions: list[Partition] = []
    traffic: dict[int, Traffic] = {}  # by the leader at that time
    is_internal: bool = False
    min_insync_replicas: int = 0
    compresses_zstd: bool = False

    def __post_init__(self) -> None:
        self.is_internal = self.name in INTERNAL_TOPICS
        self.configure(self.config)

    def configure(self, config: TopicConfig) -> None:
        """Set the configs, and copy those that most requests read."""
        self.config = config
        self.min_insync_replicas = config.integer("min.insync.replicas")
        self.compresses_zstd = config.text("compression.type") == "zstd"

    def traffic_on(self, node_id: int) -> Traffic:
        return self.traffic.setdefault(node_id, Traffic())

    def partition(self, index: int) -> Partition | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None


def invalid_topic_name(name: str) -> str | None:
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in {".", ".."}:
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_TOPIC_NAME_CHARS:
        allowed = f"the max allowed length {MAX_TOPIC_NAME_CHARS}"
        return f"Topic name is invalid: the length of '{name}' is longer than {allowed}"
    if re.fullmatch(r"[a-zA-Z0-9._-]+", name) is None:
        legal = "ASCII alphanumerics, '.', '_' and '-'"
        return f"Topic name is invalid: '{name}' contains one or more characters other than {legal}"
    return None
