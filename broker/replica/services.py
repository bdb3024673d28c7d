"""The interfaces that replica/ requires. Imported by type checkers only."""

from typing import Protocol

from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.action_queue import ActionQueue
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.purgatory.scheduler import Scheduler


class PartitionReplication(Protocol):
    def appended(self, partition: Partition) -> None: ...


class ReplicationController(Protocol):
    @property
    def replication(self) -> PartitionReplication: ...


class ReplicatedCluster(Protocol):
    @property
    def actions(self) -> ActionQueue: ...
    @property
    def scheduler(self) -> Scheduler: ...
    @property
    def controller(self) -> ReplicationController: ...


class BrokerLiveness(Protocol):
    def is_running(self, node_id: int) -> bool: ...

    def has_stopped(self, node_id: int) -> bool: ...


class ClusterMembers(Protocol):
    @property
    def controller_in_use(self) -> BrokerLiveness | None: ...
    def replica_end(self, partition: Partition, node_id: int) -> int: ...


class DelayedProduces(Protocol):
    @property
    def produces(self) -> DelayedOperationPurgatory: ...


class Peer(Protocol):
    @property
    def node_id(self) -> int: ...
    @property
    def cluster(self) -> ClusterMembers: ...
    @property
    def replicas(self) -> DelayedProduces: ...
    @property
    def metadata(self) -> MetadataCache: ...
    def __hash__(self) -> int: ...
