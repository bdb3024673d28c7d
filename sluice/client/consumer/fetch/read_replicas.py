"""The replica that each partition is fetched from (KIP-392; Kafka's selectReadReplica). Sans-I/O.

With `client.rack`, a leader can refer a partition to a follower. The consumer fetches from that replica for
`metadata.max.age.ms`, or until an error, a lost connection, a leader change, or metadata in which it is offline.

Different on purpose: after an error of a follower, or if the leader names one that is offline, the partition waits for
a metadata update. Kafka returns to the leader immediately, in a loop if that names it again.
"""

from sluice.client.consumer.subscription_state import PartitionState, SubscriptionState
from sluice.client.metadata.cluster import Node, TopicPartition
from sluice.client.metadata.metadata import Metadata
from sluice.client.network.network_client import NetworkClient


class ReadReplicas:
    def __init__(self, subscriptions: SubscriptionState, metadata: Metadata, network: NetworkClient) -> None:
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._network = network
        self._awaited: set[int] = set()  # nodes whose connections are being opened for a fetch

    def node_of(self, partition: TopicPartition, state: PartitionState, now_ms: float) -> Node | None:
        """Return the preferred replica, or the leader; None if it is unknown."""
        assert state.position is not None, "fetchable without a position"
        leader = state.position.leader.leader
        node_id = state.preferred_replica(now_ms)
        if node_id is None or leader is None:
            return leader
        node = self._metadata.cluster.node_if_online(partition, node_id)
        if node is None:
            state.clear_preferred_replica()
            self._metadata.request_update()
            return leader
        return node

    def referred(self, partition: TopicPartition, offset: int, node_id: int, now_ms: float) -> bool:
        """Fetch from a replica that the leader named for a fetch at `offset`; return False if it is offline."""
        state = self._subscriptions.get(partition)
        if self._metadata.cluster.node_if_online(partition, node_id) is None:
            return False
        if state is not None and state.position is not None and state.position.offset == offset:
            state.prefer_replica(node_id, now_ms + self._metadata.max_age_ms)
        return True

    def lost(self, node_id: int) -> None:
        """Return to the leaders of the partitions that prefer a node."""
        for partition in self._subscriptions.assigned:
            state = self._subscriptions.state_of(partition)
            if state.prefers(node_id):
                state.clear_preferred_replica()

    # -- connections ---------------------------------------------------------------------------------------------------

    def awaits_connection(self, node_id: int) -> None:
        if not self._network.connection_failed(node_id):
            self._awaited.add(node_id)

    def connected(self, node_id: int) -> None:
        self._awaited.discard(node_id)

    def check_connections(self) -> None:
        """Return to the leaders after each failed attempt, once: they may name the node again during its backoff."""
        for node_id in [one for one in self._awaited if self._network.connection_failed(one)]:
            self._awaited.discard(node_id)
            self.lost(node_id)
