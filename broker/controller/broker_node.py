"""A broker as its coordinators and its share partitions see it."""

from abc import abstractmethod
from typing import Self, cast

from sluice.broker.metadata.topic import Partition, Topic
from sluice.broker.replica.replica_manager import ReplicaManager
from sluice.broker.security.acl.authorizer import Authorizer
from sluice.purgatory.scheduler import Scheduler
from sluice.purgatory.timer import Timer

from .cluster import Cluster
from .cluster_state import ClusterMember


class BrokerNode(ClusterMember):
    def __init__(self, cluster: Cluster, node_id: int | None = None) -> None:
        runtime = cluster.runtime
        if node_id is None:
            node_id = cluster.config.integer("node.id") + len(cluster.brokers)
        self.timer = Timer(runtime.clock)
        replicas = ReplicaManager(node_id, runtime, self.timer, cluster.replicate)
        super().__init__(node_id, cluster.config.of_node(node_id), cluster.new_metadata(), replicas)
        self.cluster = cluster
        self.runtime = runtime
        self.clock = runtime.clock
        self.random = runtime.random
        self.actions = runtime.actions
        self.journal = cluster.journal
        self.features = cluster.features
        self.scheduler = Scheduler(self.timer)
        enforces_acls = bool(self.config.text("authorizer.class.name"))
        self.auth = Authorizer(self.config, cluster.acls if enforces_acls else None)
        self.authorizer = self.auth if enforces_acls else None
        self._producer_ids = iter(range(0))

    def leader_of(self, partition: Partition) -> Self | None:
        """Return the live leader of a partition, as far as this broker knows."""
        leadership = self.metadata.leadership(partition)
        leader = None if leadership is None else self.metadata.leader(leadership)
        return cast("Self | None", leader)  # all brokers of a cluster are of one class

    def internal_topic(self, name: str) -> Topic:
        """Return one of Kafka's internal topics, created on first use. Raises NotDurableError."""
        return self.metadata.topics.get(name) or self.metadata.add_topic(self.cluster.internal_topic(name))

    def new_producer_id(self) -> int:
        found = next(self._producer_ids, None)
        if found is None:
            self._producer_ids = iter(self.cluster.new_producer_ids(self.node_id))
            found = next(self._producer_ids)
        return found

    @abstractmethod
    def complete_transaction(self, partition: Partition, producer_id: int, *, committed: bool) -> None:
        """Commit or drop a producer's pending offsets, after its marker was written to __consumer_offsets."""
