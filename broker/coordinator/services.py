"""The interfaces between the coordinators and their broker. Only type checkers import this module."""

from collections.abc import Callable, Mapping, Sequence
from random import Random  # noqa: TID251  (only a type)
from typing import Protocol

from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.share.state import ShareState
from sluice.broker.coordinator.share.summary import PartitionSummary
from sluice.broker.journal.journal import Journal
from sluice.broker.metadata.cache import MetadataCache, Node
from sluice.broker.metadata.features import Features
from sluice.broker.metadata.topic import Partition, Topic, TopicPartition
from sluice.broker.replica.replica_manager import ReplicaManager
from sluice.broker.replica.services import Peer
from sluice.broker.requests.action_queue import ActionQueue
from sluice.broker.requests.context import Sliced
from sluice.broker.security.acl.auth_helper import AuthHelper
from sluice.broker.share.delivery import Done, SharePartitionId, StateWrite
from sluice.clock import Clock
from sluice.config.broker_config import Config
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.scheduler import Scheduler
from sluice.purgatory.timer import Timer


class TransactionalOffsets(Protocol):
    def complete_transaction(self, partition: Partition, producer_id: int, committed: bool) -> None:
        """Commit or drop the pending offsets of a producer, after its marker was written."""


class TransactionPartitions(Protocol):
    """Partitions of transactions, for brokers that producers write to (KIP-890)."""

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        client_version: int,
        done: Callable[[ErrorCode], None],
    ) -> None: ...

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: frozenset[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return NONE for each partition that the producer may write to, else the error."""


ShareErrors = Mapping[bytes, Mapping[int, ErrorCode]]
ShareSummaries = Mapping[bytes, Mapping[int, PartitionSummary]]


class ShareStatePersister(Protocol):
    """The share coordinator, for the group coordinator. Each method reports every partition once, maybe at once."""

    def initialize_state(
        self,
        group_id: str,
        start_offsets: Mapping[bytes, Mapping[int, int]],
        state_epoch: int,
        callback: Callable[[ShareErrors], None],
        sliced: Sliced = ...,
    ) -> None:
        """Set start offsets; -1: to be determined by the partition's leader."""

    def delete_state(
        self,
        group_id: str,
        partitions: Mapping[bytes, Sequence[int]],
        callback: Callable[[ShareErrors], None],
        sliced: Sliced = ...,
    ) -> None: ...

    def read_summary(
        self,
        group_id: str,
        partitions: Mapping[bytes, Sequence[int]],
        callback: Callable[[ShareSummaries], None],
        sliced: Sliced = ...,
    ) -> None: ...


class ShareStates(Protocol):
    """The share coordinator, for other brokers. Each method calls back once, maybe at once."""

    def initialize(self, key: SharePartitionId, state_epoch: int, start_offset: int, done: Done) -> None: ...
    def read(
        self, key: SharePartitionId, leader_epoch: int, done: Callable[[ErrorCode, ShareState | None], None]
    ) -> None: ...
    def write(self, key: SharePartitionId, write: StateWrite, done: Done) -> None: ...
    def read_summary(self, key: SharePartitionId) -> PartitionSummary: ...
    def delete(self, key: SharePartitionId, done: Done) -> None: ...


class CoordinatorHost(Peer, Node, Protocol):
    @property
    def config(self) -> Config: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def random(self) -> Random: ...
    @property
    def timer(self) -> Timer: ...
    @property
    def scheduler(self) -> Scheduler: ...
    @property
    def actions(self) -> ActionQueue: ...
    @property
    def auth(self) -> AuthHelper: ...
    @property
    def features(self) -> Features: ...
    @property
    def journal(self) -> Journal | None: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def replicas(self) -> ReplicaManager: ...
    @property
    def metadata(self) -> MetadataCache: ...
    @property
    def groups_in_use(self) -> TransactionalOffsets | None: ...
    @property
    def transactions(self) -> TransactionPartitions: ...
    @property
    def share_coordinator(self) -> ShareStates: ...
    @property
    def share_persister(self) -> ShareStatePersister: ...
    def internal_topic(self, name: str) -> Topic: ...
    def leader_of(self, partition: Partition) -> "CoordinatorHost | None": ...
    def new_producer_id(self) -> int: ...
