"""Control and state of the brokers and topics of a test cluster: `broker.cluster`."""

from collections.abc import Collection, Mapping
from typing import Literal

from sluice.broker.controller.elections import Election
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import PartitionState
from sluice.broker.server.cluster_server import ClusterServer
from sluice.config.broker_config import format_value
from sluice.errors import ArgumentError, NotRunningError
from sluice.text.arguments import Index, checks_arguments
from sluice.text.error_text import expected


@checks_arguments
class ClusterControl:
    """Control of brokers by node id, topics by name, and partitions by topic and index.

    The node id can be omitted if there is one broker. An impossible operation raises `sluice.errors.SluiceError`.
    """

    def __init__(self, server: ClusterServer) -> None:
        self._server = server

    async def stop(self, node_id: int | None = None, *, controlled: bool = True) -> None:
        """Stop a broker, after it has moved its leaders; with `controlled=False`, as if it was killed."""
        self._running.stop_broker(self._node("stop", node_id), controlled=controlled)

    async def start(self, node_id: int | None = None) -> None:
        """Start a stopped broker on its previous ports."""
        await self._running.start_broker(self._node("start", node_id))

    async def isolate(self, node_id: int | None = None) -> None:
        """Isolate a broker from the controller and the other brokers; clients still reach it."""
        self._running.isolate_broker(self._node("isolate", node_id))

    async def rejoin(self, node_id: int | None = None) -> None:
        """End the isolation of a broker."""
        self._running.rejoin_broker(self._node("rejoin", node_id))

    def _node(self, where: str, node_id: int | None) -> int:
        known = list(self._server.servers)
        if node_id is None and len(known) == 1:
            return known[0]
        if node_id is None:
            raise ArgumentError(f"{where}: node_id: missing; expected one of {', '.join(map(str, known))}")
        return node_id

    async def move_leader(self, topic: str, partition: Index, node_id: int) -> None:
        """Make an in-sync replica the leader."""
        self._running.move_leader(topic, partition, node_id)

    async def elect(
        self, topic: str, partition: Index, election: Literal["preferred", "unclean"] = "preferred"
    ) -> None:
        """Elect a leader, if an election is needed."""
        self._running.elect_leader(topic, partition, Election[election.upper()])

    async def create_topic(
        self,
        name: str,
        partitions: int = -1,
        *,
        replication_factor: int = -1,
        assignments: Mapping[int, Collection[int]] | None = None,
        config: Mapping[str, str | float | bool] | None = None,
    ) -> None:
        """Create a topic.

        Args:
            name: Topic name.
            partitions: Number of partitions; -1 means the broker's default.
            replication_factor: Replicas of each partition; -1 means the broker's default.
            assignments: Node ids of each partition's replicas, the preferred leader first, in place of both numbers.
            config: Topic configs by name.
        """
        brokers = len(self._server.servers)
        if replication_factor > brokers:
            problem = expected(f"at most {brokers}, the number of brokers", replication_factor)
            raise ArgumentError(f"create_topic: replication_factor: {problem}. Set `brokers` to start more")
        configs = {key: format_value(value) for key, value in (config or {}).items()}
        assigned = tuple((assignments or {}).items())
        await self._running.create_topic(NewTopic(name, partitions, replication_factor, assigned, configs))

    def partition(self, topic: str, partition: Index) -> PartitionState:
        """Return the current replicas, ISR, leader (-1: none) and epochs of a partition."""
        return self._server.partition(topic, partition).state

    @property
    def _running(self) -> ClusterServer:
        if self._server.is_stopping:
            raise NotRunningError("the broker has stopped")
        return self._server
