"""The interfaces that replica/ requires. Imported by type checkers only."""

from typing import Protocol

from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.action_queue import ActionQueue
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.purgatory.scheduler import Scheduler


class PartitionReplication(Protocol):
    """The followers of all partitions."""

    def appended(self, partition: Partition) -> None:
        """Start the replication of records that the leader has appended."""


class ReplicationController(Protocol):
    """The controller, as used by partition leaders."""

    @property
    def replication(self) -> PartitionReplication: ...


class ReplicatedCluster(Protocol):
    """The cluster of a replica manager."""

    @property
    def actions(self) -> ActionQueue: ...
    @property
    def scheduler(self) -> Scheduler: ...
    @property
    def controller(self) -> ReplicationController: ...


class BrokerLiveness(Protocol):
    """The controller's view of live brokers."""

    def is_running(self, node_id: int) -> bool:
        """Return whether a broker is neither stopped nor isolated."""

    def has_stopped(self, node_id: int) -> bool: ...


class ClusterMembers(Protocol):
    """The cluster of a broker."""

    @property
    def controller_in_use(self) -> BrokerLiveness | None: ...


class DelayedProduces(Protocol):
    """The replica manager of a broker, as used for requests to other brokers."""

    @property
    def produces(self) -> DelayedOperationPurgatory: ...


class Peer(Protocol):
    """A broker, as used by another broker of its cluster."""

    @property
    def node_id(self) -> int: ...
    @property
    def cluster(self) -> ClusterMembers: ...
    @property
    def replicas(self) -> DelayedProduces: ...
    def __hash__(self) -> int: ...
