"""All brokers of a cluster with their sockets, started and stopped together."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random  # noqa: TID251  (type only)
from typing import TYPE_CHECKING

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.controller.controller import Controller
from sluice.broker.controller.elections import Election
from sluice.broker.exchange.advertised_versions import advertised_with, served_as
from sluice.broker.exchange.exchange import Exchange
from sluice.broker.journal.journal import Journal
from sluice.broker.metadata.new_topic import NewTopic, TopicError
from sluice.broker.metadata.topic import TRANSACTION_STATE_TOPIC, Partition
from sluice.broker.network.socket_server import STOP_GRACE_S, SocketServer
from sluice.broker.on_demand import OnDemand
from sluice.broker.requests.runtime import Runtime
from sluice.broker.requests.worker import ThreadWorker
from sluice.broker.throttling.scope import EVERYTHING
from sluice.clock import Clock
from sluice.config.broker_config import Config, Endpoint
from sluice.errors import ClusterError, SluiceError, UnknownResourceError
from sluice.protocol.errors import ErrorCode

from .upstream_state import UpstreamClusterState, UpstreamState

if TYPE_CHECKING:
    from sluice.broker.faults.engine import FaultEngine

# By then, clients that were waiting for the start have sent their first requests.
_RESUME_AFTER_MS = 500


class ClusterServer:
    is_proxy = False  # whether the brokers forward all requests to another cluster
    scope = EVERYTHING  # of fault rules

    def __init__(
        self,
        config: Config,
        clock: Clock,
        random: Random,
        loop: asyncio.AbstractEventLoop,
        node_ids: Sequence[int] | None = None,
    ) -> None:
        """Make the brokers with these ids, by default those of the config."""
        self.config = config
        self.is_virtual = hasattr(loop, "bind")  # whether the loop is in virtual time, and has its own network
        worker = None if self.is_virtual else ThreadWorker(loop.call_soon_threadsafe)
        self.cluster = Cluster(Runtime(config, clock, random, worker))
        self.servers: dict[int, SocketServer] = {}
        self.brokers: dict[int, Broker] = {}
        self.is_stopping = False
        self._random_state = random.getstate()
        self._loop = loop
        self._starting: set[asyncio.Task[None]] = set()
        first = config.integer("node.id")
        for node_id in range(first, first + config.integer("sluice.brokers")) if node_ids is None else node_ids:
            server = self.servers[node_id] = self._new_server(node_id)
            self.brokers[node_id] = server.broker
        if self.cluster.logs.directory is not None:
            from .log_dir_recovery import recover_log_dir

            recover_log_dir(self.cluster, self.cluster.logs.directory)

    def _new_server(self, node_id: int) -> SocketServer:
        release = self.config.text("sluice.kafka.release")
        broker = Broker(self.cluster, advertised_with(self.config), served_as(release), node_id)
        return SocketServer(broker, Exchange(broker), self._loop)

    async def start(self, listeners: Mapping[int, Sequence[Endpoint]] | None = None) -> None:
        """Listen as configured, or on `listeners` by node id.

        Raises SluiceError if an address is unavailable; then no port stays bound.
        """
        try:
            for node_id, server in self.servers.items():
                here, advertised = self._listeners_of(node_id)
                await server.start((listeners or {}).get(node_id, here), advertised)
        except SluiceError:
            await self.stop()
            raise
        if self.cluster.journal is not None and self.config.boolean("sluice.journal.topic"):
            await self._write_journal_topic(self.cluster.journal)
        if TRANSACTION_STATE_TOPIC in self.cluster.topics:
            self.cluster.runtime.scheduler.schedule_once(_RESUME_AFTER_MS, self._resume_transactions)

    async def _write_journal_topic(self, journal: Journal) -> None:
        from .journal_topic import JournalTopic

        JournalTopic(self.cluster, journal)

    def _listeners_of(self, node_id: int) -> tuple[list[Endpoint], list[Endpoint]]:
        """Return the addresses to listen on, and those to advertise where they differ."""
        number = node_id - self.config.integer("node.id")
        return self.config.listeners(number), self.config.advertised_listeners(number)

    def upstream_cluster_state(self) -> UpstreamClusterState | None:
        """Return the state of the cluster behind a proxy; None if this is no proxy."""
        return None

    def upstream_state(self, node_id: int) -> UpstreamState | None:
        """Return the state of the broker behind a broker of a proxy; None if this is no proxy."""
        return None

    @OnDemand
    def faults(self) -> "FaultEngine":
        """Make the engine of the fault rules with the first rule."""
        from sluice.broker.faults.engine import FaultEngine, seed_of

        return FaultEngine(self, seed_of(self._random_state))

    def _resume_transactions(self) -> None:
        for broker in self.brokers.values():
            broker.resume_transactions()

    # Operations on single brokers. Each raises ClusterError if the broker's state does not allow it.

    def stop_broker(self, node_id: int, *, controlled: bool = True) -> None:
        """Stop a broker; if `controlled`, it gives up its leaderships first."""
        controller = self._checked_controller(node_id, "stop")
        if controlled and controller.is_running(node_id):
            controller.shut_down(node_id)
        else:
            controller.crashed(node_id)
        server = self.servers[node_id]
        server.close()
        if controlled:
            self._loop.call_later(STOP_GRACE_S, server.cut)
        else:
            server.cut()
        self._changed(node_id)

    async def start_broker(self, node_id: int) -> None:
        """Start a stopped broker on its former addresses, with only the state of the cluster."""
        controller = self._checked_controller(node_id, "start")
        before = self.servers[node_id]
        server = self._new_server(node_id)
        broker = server.broker
        if (faults := ClusterServer.faults.if_made(self)) is not None:
            faults.attach_broker(broker, server)
        try:
            await server.start(before.endpoints, before.broker.endpoints.values())
        except SluiceError:
            await server.stop()
            raise
        self.brokers[node_id], self.servers[node_id] = broker, server
        controller.started(broker)
        if (faults := ClusterServer.faults.if_made(self)) is not None:  # made meanwhile, or before
            faults.started(server)
        self._changed(node_id)

    def start_broker_soon(self, node_id: int, on_started: Callable[[SluiceError | None], None]) -> None:
        async def start() -> None:
            problem = None
            try:
                await self.start_broker(node_id)
            except SluiceError as error:
                problem = error
            on_started(problem)

        task = self._loop.create_task(start())
        self._starting.add(task)  # the event loop keeps only a weak reference
        task.add_done_callback(self._starting.discard)

    def isolate_broker(self, node_id: int) -> None:
        self._checked_controller(node_id, "isolate").isolate(node_id)
        self._changed(node_id)

    def rejoin_broker(self, node_id: int) -> None:
        self._checked_controller(node_id, "rejoin").rejoin(node_id)
        self._changed(node_id)

    def _changed(self, node_id: int) -> None:
        if (faults := ClusterServer.faults.if_made(self)) is not None:
            faults.broker_states.changed(node_id)

    async def create_topic(self, new: NewTopic) -> None:
        created = self.cluster.create(new)
        if isinstance(created, TopicError):
            raise ClusterError(f"topic {new.name}: {created.code.name}: {created.message or created.code.message}")

    def move_leader(self, topic: str, index: int, node_id: int) -> None:
        problem = self.cluster.controller.move_leader(self.partition(topic, index), node_id)
        if problem is not None:
            raise ClusterError(problem)

    def elect_leader(self, topic: str, index: int, election: "Election") -> None:
        error = self.cluster.controller.elect_leader(self.partition(topic, index), election)
        if error and error != ErrorCode.ELECTION_NOT_NEEDED:
            raise ClusterError(f"{topic}-{index}: {error.message}")

    def partition(self, topic: str, index: int) -> Partition:
        found = self.cluster.topics.get(topic)
        if found is None:
            raise UnknownResourceError(f"there is no topic {topic}")
        partition = found.partition(index)
        if partition is None:
            last = len(found.partitions) - 1
            raise UnknownResourceError(f"partition {topic}-{index} does not exist; expected partition 0 to {last}")
        return partition

    def check_transition(self, node_id: int, event: str) -> None:
        self._checked_controller(node_id, event)

    def _checked_controller(self, node_id: int, event: str) -> "Controller":
        if node_id not in self.servers:
            node_ids = ", ".join(map(str, self.servers))
            raise UnknownResourceError(f"there is no broker {node_id}; expected one of {node_ids}")
        problem = self.cluster.controller.transition_error(node_id, event)
        if problem is not None:
            raise ClusterError(problem)
        return self.cluster.controller

    def close(self) -> None:
        if self.is_stopping:
            return
        self.is_stopping = True
        self.cluster.close()
        for server in self.servers.values():
            server.close()

    async def stop(self) -> None:
        self.close()
        await asyncio.gather(*(server.stop() for server in self.servers.values()))
