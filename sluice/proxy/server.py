"""A proxy in front of a cluster: one server for each upstream broker, with the same node id.

A broker's server stays when the upstream broker leaves, so that its port is the same when it returns. While no
connection to the upstream broker can be made, the port is closed, as that of a dead broker: a client that is accepted
and then disconnected may reset its reconnect backoff.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from random import Random  # noqa: TID251  (only the type of an injected value)
from typing import NamedTuple, cast

from sluice.broker.admin.server import LoadPage
from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.controller.elections import Election
from sluice.broker.journal.journal import Journal
from sluice.broker.journal.reader import JournalReader
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import Partition
from sluice.broker.network.socket_server import SocketServer
from sluice.broker.process import BrokerProcess
from sluice.broker.server.cluster_server import ClusterServer
from sluice.broker.server.upstream_state import UpstreamClusterState, UpstreamState
from sluice.broker.throttling.scope import EVERYTHING, Scope
from sluice.client.admin.topics import NewTopic as AdminNewTopic
from sluice.client.errors import KafkaException
from sluice.clock import Clock, sleep_ms
from sluice.config.broker_config import Config, Endpoint, address_of
from sluice.errors import ClusterError, ProxyError, SluiceError
from sluice.quotas.store import REQUEST_PERCENTAGE

from .forwarding import ForwardingExchange
from .handlers import served_with_own_sasl
from .journal_topic import UpstreamJournalTopic
from .throttling import REQUEST_TIME_REFUSAL, ForwardedThrottler
from .upstream.cluster import VersionRange
from .upstream.connection import ForwardedContext
from .upstream.connector import UpstreamConnector
from .upstream.use import UpstreamUse

log = logging.getLogger("sluice.proxy")

_LARGEST_PORT = 65535
# A new broker is found after at most this time, as long as Kafka's clients wait for a new topic to appear.
_REFRESH_MS = 5_000
# While a broker is lost, which may return on another address: the longest reconnect backoff of Kafka's clients.
_REFRESH_LOST_MS = 1_000
_DECIDES = "a proxy does not choose leaders; the cluster behind it does"


class ProxyOptions(NamedTuple):
    upstream: Mapping[str, str]  # properties of a Kafka client, with bootstrap.servers
    ports: Mapping[int, int]  # by node id
    advertised_host: str | None
    sasl_passthrough: bool = False  # clients authenticate with the upstream brokers themselves
    use: UpstreamUse | None = None  # notes what clients create
    scope: Scope = EVERYTHING  # of fault rules and quotas

    def __repr__(self) -> str:  # without passwords
        return f"{type(self).__name__}({self.upstream['bootstrap.servers']})"


class ProxyServer(BrokerProcess):
    is_proxy = True

    def __init__(
        self,
        config: Config,
        clock: Clock,
        random: Random,
        loop: asyncio.AbstractEventLoop,
        load_page: LoadPage,
        connector: UpstreamConnector,
        versions: Mapping[int, Mapping[int, VersionRange]],
        options: ProxyOptions,
    ) -> None:
        """Make the servers of the known brokers, before `start`.

        Args:
            config: Properties of the proxy's side.
            clock: Time.
            random: Source of all randomness.
            loop: The running loop.
            load_page: Imports the web page of the admin port.
            connector: Connects to the cluster, whose brokers are known.
            versions: Served API versions by node id, of the brokers that responded.
            options: Ports and host for clients.
        """
        self.upstream = upstream = connector.upstream
        self._connector = connector
        some = next(iter(versions.values()))
        self._versions = {node_id: versions.get(node_id, some) for node_id in upstream.brokers}
        self._lost_at_start = upstream.brokers.keys() - versions.keys()
        self._options = options
        self.scope = options.scope
        self._exchanges: dict[int, ForwardingExchange] = {}
        self._isolated: dict[int, Callable[[], None]] = {}  # node id -> end of the isolation
        self._closed_ports: dict[int, list[Callable[[], None]]] = {}  # node id -> functions that open them
        connector.on_lost, connector.on_found = self._close_ports, self._open_ports
        self._refresh: asyncio.Task[None] | None = None
        self._journal_topic: UpstreamJournalTopic | None = None
        super().__init__(config, clock, random, loop, load_page, node_ids=sorted(upstream.brokers))
        self.cluster.cluster_id = upstream.cluster_id
        self.cluster.client_quotas.refuse(REQUEST_PERCENTAGE, REQUEST_TIME_REFUSAL)
        # For clients that have not authenticated themselves yet.
        self.cluster.features.by_name, self.cluster.features.epoch = upstream.features, upstream.features_epoch

    async def start(
        self, listeners: Mapping[int, Sequence[Endpoint]] | None = None, admin: tuple[str, int] | None = None
    ) -> None:
        await super().start(listeners, admin)
        for node_id in self._lost_at_start:
            self._connector.lose(node_id)
        self._refresh = self._loop.create_task(self._follow())

    async def stop(self) -> None:
        if self._refresh is not None:
            self._refresh.cancel()
        await super().stop()
        if self._journal_topic is not None:
            await self._journal_topic.stop()
        self._connector.close()
        await self.upstream.close()

    async def _write_journal_topic(self, journal: Journal) -> None:
        reader = JournalReader(journal, self.cluster.runtime.clock)
        self._journal_topic = UpstreamJournalTopic(reader, self._options.upstream)
        await self._journal_topic.start(self.upstream.admin)

    def _new_server(self, node_id: int) -> SocketServer:
        versions = self._served(node_id)
        broker = Broker(self.cluster, versions, versions, node_id, ForwardedThrottler)
        broker.quotas.request = None  # a callback has limits of request time
        exchange = self._exchanges[node_id] = ForwardingExchange(broker, self._connector, self._options.use, self.scope)
        return SocketServer(broker, exchange, self._loop)

    def _served(self, node_id: int) -> Mapping[int, VersionRange]:
        versions = self._versions[node_id]
        return versions if self._connector.passes_sasl else served_with_own_sasl(versions)

    def _listeners_of(self, node_id: int) -> tuple[list[Endpoint], list[Endpoint]]:
        bound = self.config.listeners(node_id)
        port = self._options.ports.get(node_id)
        if port is not None:
            bound[0].port = port
        for endpoint in bound:
            if endpoint.port > _LARGEST_PORT:
                raise SluiceError(
                    f"broker {node_id} gets port {endpoint.port}, its id above the port of {endpoint.name};"
                    f" expected at most {_LARGEST_PORT}: choose a lower one, or set it by --ports {node_id}=PORT"
                )
        host = self._options.advertised_host
        if host is None:
            return bound, self.config.advertised_listeners(node_id)
        return bound, [Endpoint(endpoint.name, host, endpoint.port) for endpoint in bound]

    def upstream_cluster_state(self) -> UpstreamClusterState:
        return UpstreamClusterState(
            ",".join(self.upstream.config.names("bootstrap.servers")), self.upstream.controller_id
        )

    def upstream_state(self, node_id: int) -> UpstreamState:
        broker, traffic = self.upstream.brokers[node_id], self._exchanges[node_id].traffic
        contexts = (cast(ForwardedContext, connection.ctx) for connection in self.servers[node_id].connections)
        return UpstreamState(
            address=address_of(broker.host, broker.port),
            is_reachable=self._connector.is_reachable(node_id),
            open_connections=traffic.open,
            connections=traffic.connections,
            connection_failures=traffic.failures,
            disconnects=traffic.disconnects,
            in_flight=sum(len(ctx.upstream.in_flight) for ctx in contexts),
            bytes_sent=traffic.bytes_sent,
            bytes_received=traffic.bytes_received,
            invalid_responses=traffic.invalid_responses,
            durations={api: (each.counts, each.sum_s) for api, each in traffic.latencies.items()},
            errors=traffic.errors,
        )

    # -- operations on the cluster -------------------------------------------------------------------------------------

    async def create_topic(self, new: NewTopic) -> None:
        """Create a topic in the upstream cluster."""
        assignments = {index: list(replicas) for index, replicas in new.assignments}
        wanted = AdminNewTopic(new.name, new.num_partitions, new.replication_factor, new.own_configs, assignments)
        try:
            (await self.upstream.admin.create_topics([wanted])).all()
        except KafkaException as error:
            raise ClusterError(f"topic {new.name}: {error}") from None
        if self._options.use is not None:
            self._options.use.topics.add(new.name)

    def partition(self, topic: str, index: int) -> Partition:
        raise ProxyError(f"partition {topic}-{index}: the brokers behind a proxy have it; use an admin client")

    def move_leader(self, topic: str, index: int, node_id: int) -> None:
        raise ProxyError(f"move_leader: {_DECIDES}")

    def elect_leader(self, topic: str, index: int, election: Election) -> None:
        raise ProxyError(f"elect: {_DECIDES}")

    # Neither a stopped nor an isolated broker changes the upstream broker.

    def stop_broker(self, node_id: int, *, controlled: bool = True) -> None:
        super().stop_broker(node_id, controlled=controlled)
        self._isolated.pop(node_id, None)

    async def start_broker(self, node_id: int) -> None:
        await super().start_broker(node_id)
        if node_id in self._connector.lost_brokers:
            self._close_ports(node_id)

    def isolate_broker(self, node_id: int) -> None:
        """Isolate a broker from its clients: connections stay open, and are not read."""
        super().isolate_broker(node_id)
        self._isolated[node_id] = self.servers[node_id].hold()

    def rejoin_broker(self, node_id: int) -> None:
        super().rejoin_broker(node_id)
        self._isolated.pop(node_id)()

    # -- the upstream's brokers ----------------------------------------------------------------------------------------

    def _close_ports(self, node_id: int) -> None:
        server = self.servers[node_id]
        self._closed_ports[node_id] = [server.refuse(name) for name in server.listeners]

    def _open_ports(self, node_id: int) -> None:
        for open_port in self._closed_ports.pop(node_id):
            open_port()

    async def _follow(self) -> None:
        """Follow the brokers of the upstream cluster, until the proxy stops."""
        problem = ""
        while True:
            connector = self._connector
            await sleep_ms(self.cluster.runtime.clock, _REFRESH_LOST_MS if connector.may_return else _REFRESH_MS)
            try:
                listed = await self.upstream.refresh()
                connector.listed(listed)
                lost = connector.lost_brokers
                found = await self.upstream.versions(node_id for node_id in listed if node_id not in lost)
                for node_id, versions in found.items():
                    if node_id not in self.servers:
                        await self._add(node_id, versions)
                    elif versions != self._versions[node_id]:
                        self.upgrade(node_id, versions)
            except (KafkaException, SluiceError) as error:
                reason = str(self.upstream.admin.network.client.last_failure or error)
                if reason != problem:
                    log.warning("the upstream's brokers could not be read", extra={"reason": reason})
                problem = reason
            else:
                problem = ""

    async def _add(self, node_id: int, versions: Mapping[int, VersionRange]) -> None:
        listeners = self._listeners_of(node_id)
        self._versions[node_id] = versions
        server = self._new_server(node_id)
        if (faults := ClusterServer.faults.if_made(self)) is not None:
            faults.attach_broker(server.broker, server)
        await server.start(*listeners)
        self.brokers[node_id], self.servers[node_id] = server.broker, server
        if (controller := Cluster.controller.if_made(self.cluster)) is not None:
            controller.added(node_id)
        if (faults := ClusterServer.faults.if_made(self)) is not None:  # made meanwhile, or before
            faults.started(server)
        log.info("new upstream broker", extra={"broker": node_id, "address": str(server.endpoints[0])})

    def upgrade(self, node_id: int, versions: Mapping[int, VersionRange]) -> None:
        """Serve other API versions, as the upstream broker was restarted with another release."""
        self._versions[node_id] = versions
        self._exchanges[node_id].serve(self._served(node_id))
        log.info("the upstream broker serves other API versions", extra={"broker": node_id})
