"""The interfaces that share/ requires. Imported by type checkers only."""

from collections.abc import Callable, Sequence
from typing import Protocol

from sluice.broker.controller.cluster import Cluster
from sluice.broker.journal.journal import Journal
from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.metadata.features import Features
from sluice.broker.replica.replica_manager import ReplicaManager
from sluice.clock import Clock
from sluice.config.broker_config import Config
from sluice.protocol.errors import ErrorCode
from sluice.purgatory.scheduler import Scheduler
from sluice.purgatory.timer import Timer

from .delivery import Done, SharePartitionId, StateBatch, StateWrite


class StoredState(Protocol):
    @property
    def start_offset(self) -> int: ...
    @property
    def state_epoch(self) -> int: ...
    @property
    def batches(self) -> Sequence[StateBatch]: ...


class Persister(Protocol):
    def read_state(
        self, key: SharePartitionId, leader_epoch: int, callback: Callable[[ErrorCode, StoredState | None], None]
    ) -> None: ...

    def write_state(self, key: SharePartitionId, write: StateWrite, callback: Done) -> None: ...


class ShareHost(Protocol):
    @property
    def node_id(self) -> int: ...
    @property
    def config(self) -> Config: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def timer(self) -> Timer: ...
    @property
    def scheduler(self) -> Scheduler: ...
    @property
    def features(self) -> Features: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def journal(self) -> Journal | None: ...
    @property
    def metadata(self) -> MetadataCache: ...
    @property
    def replicas(self) -> ReplicaManager: ...
    @property
    def share_persister(self) -> Persister: ...
