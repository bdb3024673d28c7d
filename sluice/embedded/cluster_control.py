"""What a test does to the brokers and topics of its cluster, and what it sees of them: `broker.cluster`."""

from collections.abc import Collection, Mapping
from typing import Literal

from sluice.broker.controller.elections import Election
from sluice.broker.controller.errors import ClusterError
from sluice.broker.metadata.new_topic import NewTopic, TopicError
from sluice.broker.metadata.topic import PartitionState
from sluice.broker.server.cluster_server import ClusterServer
from sluice.config.broker_config import format_value
from sluice.errors import SluiceError


class ClusterControl:
    """The brokers by their node ids, topics by their names, partitions by topic and index.

    What cannot be done raises `sluice.errors.SluiceError`, one line that says why.
    """

    def __init__(self, server: ClusterServer) -> None:
        self._server = server

    async def stop(self, node_id: int, *, controlled: bool = True) -> None:
        """Stops a broker, after it has given up what it leads; not `controlled`, it is gone as if it was killed."""
        self._running.stop_broker(node_id, controlled=controlled)

    async def start(self, node_id: int) -> None:
        """Starts a broker that was stopped, on the ports that it had."""
        await self._running.start_broker(node_id)

    async def isolate(self, node_id: int) -> None:
        """Clients reach the broker, the controller and the other brokers do not."""
        self._running.isolate_broker(node_id)

    async def rejoin(self, node_id: int) -> None:
        """Ends the isolation of a broker."""
        self._running.rejoin_broker(node_id)

    async def move_leader(self, topic: str, partition: int, node_id: int) -> None:
        """Makes a replica that is in sync the leader."""
        self._running.move_leader(topic, partition, node_id)

    async def elect(self, topic: str, partition: int, election: Literal["preferred", "unclean"] = "preferred") -> None:
        """Holds an election; nothing changes where none is needed."""
        self._running.elect_leader(topic, partition, Election[election.upper()])

    async def create_topic(
        self,
        name: str,
        partitions: int = -1,
        *,
        replication_factor: int = -1,
        assignments: Mapping[int, Collection[int]] | None = None,
        config: Mapping[str, str | float] | None = None,
    ) -> None:
        """Creates a topic; -1 is what the broker's configuration has.

        `assignments` are the brokers of each partition, the preferred leader first, in place of the two numbers.
        """
        configs = {key: format_value(value) for key, value in (config or {}).items()}
        new = NewTopic(name, partitions, replication_factor, assignments or {}, configs)
        created = self._running.cluster.create(new)
        if isinstance(created, TopicError):
            raise ClusterError(f"topic {name}: {created.code.name}: {created.message or created.code.message}")

    def partition(self, topic: str, partition: int) -> PartitionState:
        """Replicas, ISR, leader (-1: none) and epochs of a partition, as they are now."""
        return self._server.partition(topic, partition).state

    @property
    def _running(self) -> ClusterServer:
        if self._server.is_stopping:
            raise SluiceError("the broker has stopped")
        return self._server
