"""A cluster in one's own process and event loop: for tests that want to stop, start and cut off brokers.

    async with LocalCluster(brokers=3, config={"sluice.election.delay.ms": "500"}) as cluster:
        producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap)
        ...
        await cluster.stop(1)

Everything else is as with `sluice serve`, of which this is the same without a process, signals and logging.
"""

import asyncio
from collections.abc import Mapping
from random import Random  # noqa: TID251  (a cluster's one source of chance is made here)
from types import TracebackType
from typing import Literal

from sluice.broker.cluster_server import ClusterServer
from sluice.broker.elections import Election
from sluice.broker.journal.reader import JournalReader
from sluice.broker.topic import PartitionState
from sluice.clock import LoopClock
from sluice.config import Config, address_of
from sluice.errors import ConfigError

__all__ = ["LocalCluster", "PartitionState"]

# A test asks afterwards: what its clients do in some minutes, in 8 MiB at most.
_JOURNAL_EVENTS = "16384"


class LocalCluster:
    """Brokers with ids 1, 2, ... on free ports of 127.0.0.1, with a journal, unless `config`, properties by their
    names, says else.

    What cannot be done to a cluster as it is raises `sluice.errors.SluiceError`, one line that says why.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        config: Mapping[str, str] | None = None,
        admin_port: int | None = None,
        seed: int = 0,
    ) -> None:
        """`admin_port`: of the admin HTTP port, 0 for a free one, None for none. The same `seed`, the same chance."""
        defaults = {"listeners": "PLAINTEXT://127.0.0.1:0", "sluice.journal.events": _JOURNAL_EVENTS}
        pairs = {**defaults, "sluice.brokers": str(brokers), **(config or {})}
        self._config = Config.load(None, [f"{name}={value}" for name, value in pairs.items()])
        self._admin_port = admin_port
        self._seed = seed
        self._server: ClusterServer | None = None

    async def __aenter__(self) -> "LocalCluster":
        assert self._server is None, "a cluster is started once"
        loop = asyncio.get_running_loop()
        random = Random(self._seed)  # noqa: S311  (a test broker wants to be repeatable)
        server = ClusterServer(self._config, LoopClock(loop), random, loop)
        host = self._config.text("sluice.admin.host")
        await server.start(None if self._admin_port is None else (host, self._admin_port))
        self._server = server
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._running.stop()

    @property
    def bootstrap(self) -> str:
        """`host:port` of all brokers, those that are stopped too, for a client's `bootstrap.servers`."""
        return ",".join(self.brokers.values())

    @property
    def brokers(self) -> dict[int, str]:
        """`host:port` of the first listener of each broker, by node id."""
        return {node_id: str(server.endpoints[0]) for node_id, server in self._running.servers.items()}

    @property
    def admin(self) -> str | None:
        """Where the admin HTTP port is, if there is one."""
        admin = self._running.admin
        return None if admin is None else f"http://{address_of(admin.host, admin.port)}"

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

    def partition(self, topic: str, partition: int) -> PartitionState:
        """Replicas, ISR, leader (-1: none) and epochs of a partition, as they are now."""
        return self._running.partition(topic, partition).state

    @property
    def journal(self) -> JournalReader:
        """What happened. Raises ConfigError where `sluice.journal.events` is 0."""
        cluster = self._running.cluster
        if cluster.journal is None:
            raise ConfigError("there is no journal: sluice.journal.events is 0; 16384 keeps so many events")
        return JournalReader(cluster.journal, cluster.clock)

    @property
    def _running(self) -> ClusterServer:
        assert self._server is not None, "a cluster runs within `async with`"
        return self._server
