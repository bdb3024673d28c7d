"""A proxy in front of a cluster: one server for each upstream broker, with the same node id.

A broker's server stays when the upstream broker leaves, so that its port is the same when it returns.
"""

import asyncio
import logging
import ssl
from collections.abc import Mapping, Sequence
from random import Random  # noqa: TID251  (only the type of an injected value)
from typing import TYPE_CHECKING

from sluice.broker.admin.server import LoadPage
from sluice.broker.broker import Broker
from sluice.broker.network.socket_server import SocketServer
from sluice.broker.process import BrokerProcess
from sluice.broker.requests.session import Session
from sluice.broker.server.cluster_server import ClusterServer
from sluice.client.errors import KafkaException
from sluice.client.network import sasl
from sluice.client.network.connection import ResponsePool
from sluice.client.network.tls import tls_context
from sluice.clock import Clock, sleep_ms
from sluice.config.broker_config import Config, Endpoint
from sluice.errors import SluiceError
from sluice.protocol.addresses import rewriter_of

from .authentication import Authentication
from .forwarding import ForwardingExchange
from .known_topic import KnownTopic
from .upstream_cluster import UpstreamCluster, VersionRange
from .upstream_connection import UpstreamConnection

if TYPE_CHECKING:
    from .discovery import ProxyOptions

log = logging.getLogger("sluice.proxy")

# A new broker is found after at most this time, as long as Kafka's clients wait for a new topic to appear.
_REFRESH_MS = 5_000


class ProxyServer(BrokerProcess):
    def __init__(
        self,
        config: Config,
        clock: Clock,
        random: Random,
        loop: asyncio.AbstractEventLoop,
        load_page: LoadPage,
        upstream: UpstreamCluster,
        versions: Mapping[int, Mapping[int, VersionRange]],
        options: "ProxyOptions",
    ) -> None:
        """Make the servers of the known brokers, before `start`.

        Args:
            config: Properties of the proxy's side.
            clock: Time.
            random: Source of all randomness.
            loop: The running loop.
            load_page: Imports the web page of the admin port.
            upstream: The cluster, whose brokers are known.
            versions: Served API versions by node id.
            options: Ports and host for clients.
        """
        self.pool = ResponsePool()
        self.upstream = upstream
        self.rewriter_of = rewriter_of
        self._versions = versions
        self._options = options
        self._tls: ssl.SSLContext | None = tls_context(upstream.config) if upstream.config.uses_tls else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._unreachable: set[int] = set()  # node ids
        self._refresh: asyncio.Task[None] | None = None
        super().__init__(config, clock, random, loop, load_page, node_ids=sorted(upstream.brokers))
        self.cluster.cluster_id = upstream.cluster_id

    async def start(
        self, listeners: Mapping[int, Sequence[Endpoint]] | None = None, admin: tuple[str, int] | None = None
    ) -> None:
        await super().start(listeners, admin)
        self._refresh = self._loop.create_task(self._follow())

    async def stop(self) -> None:
        if self._refresh is not None:
            self._refresh.cancel()
        await super().stop()
        for task in self._tasks:
            task.cancel()
        await self.upstream.close()

    def _new_server(self, node_id: int) -> SocketServer:
        versions = self._versions[node_id]
        broker = Broker(self.cluster, versions, versions, node_id)
        return SocketServer(broker, ForwardingExchange(broker, self), self._loop)

    def _listeners_of(self, node_id: int) -> tuple[list[Endpoint], list[Endpoint]]:
        bound = self.config.listeners(node_id)
        port = self._options.ports.get(node_id)
        if port is not None:
            bound[0].port = port
        host = self._options.advertised_host
        if host is None:
            return bound, self.config.advertised_listeners(node_id)
        return bound, [Endpoint(endpoint.name, host, endpoint.port) for endpoint in bound]

    # -- called by the exchanges ---------------------------------------------------------------------------------------

    def connect(self, node_id: int, connection: UpstreamConnection) -> None:
        task = self._loop.create_task(self._connect(node_id, connection))
        self._tasks.add(task)  # the event loop keeps only a weak reference
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, node_id: int, connection: UpstreamConnection) -> None:
        broker, config = self.upstream.brokers[node_id], self.upstream.config
        name = broker.host if self._tls is not None else None
        try:
            await self._loop.create_connection(
                lambda: connection, broker.host, broker.port, ssl=self._tls, server_hostname=name
            )
        except OSError as error:
            self.lost(node_id, error)
            connection.failed()
            return
        if node_id in self._unreachable:
            self._unreachable.remove(node_id)
            log.info("upstream broker reachable again", extra={"broker": node_id})
        authentication = None
        if config.uses_sasl:
            authentication = Authentication(sasl.conversation(config.text("sasl.mechanism"), config.sasl_options()))
        connection.connected(authentication)

    def lost(self, node_id: int, error: Exception | None) -> None:
        """Log once that connections to a broker fail."""
        if error is not None and node_id not in self._unreachable:
            self._unreachable.add(node_id)
            broker = self.upstream.brokers[node_id]
            log.warning(
                "upstream broker unreachable",
                extra={"broker": node_id, "address": f"{broker.host}:{broker.port}", "reason": str(error)},
            )

    def address_of(self, session: Session, node_id: int, host: str, port: int) -> tuple[str, int] | None:
        """Return the address of a broker for a client; None if the broker is not known yet."""
        broker = self.brokers.get(node_id)
        if broker is None or session.connection.advertised.name not in broker.endpoints:
            return None
        endpoint = session.endpoint_of(broker)
        return endpoint.host, endpoint.port

    def learn(self, topic_id: bytes, name: str) -> None:
        known = self.cluster.topics_by_id
        if topic_id not in known:
            known[topic_id] = KnownTopic(name)  # type: ignore[assignment]  # a proxy reads only the name

    # -- the upstream's brokers ----------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Follow the brokers of the upstream cluster, until the proxy stops."""
        problem = ""
        while True:
            await sleep_ms(self.cluster.runtime.clock, _REFRESH_MS)
            try:
                await self.upstream.refresh()
                for node_id in self.upstream.brokers:
                    if node_id not in self.servers:
                        await self._add(node_id)
            except (KafkaException, SluiceError) as error:
                if str(error) != problem:
                    log.warning("the upstream's brokers could not be read", extra={"reason": str(error)})
                problem = str(error)
            else:
                problem = ""

    async def _add(self, node_id: int) -> None:
        self._versions = {**self._versions, node_id: await self.upstream.versions_of(node_id)}
        server = self._new_server(node_id)
        if (faults := ClusterServer.faults.if_made(self)) is not None:
            faults.attach_broker(server.broker, server)
        await server.start(*self._listeners_of(node_id))
        self.brokers[node_id], self.servers[node_id] = server.broker, server
        if (faults := ClusterServer.faults.if_made(self)) is not None:  # made meanwhile, or before
            faults.started(server)
        log.info("new upstream broker", extra={"broker": node_id, "address": str(server.endpoints[0])})
