"""A proxy in virtual time, in front of a VirtualBroker with the same clock.

Each upstream connection is a `Client` of the upstream broker, whose bytes pass unchanged.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Any

from sluice.broker.metadata.topic import Partition, Topic
from sluice.broker.server.cluster_server import ClusterServer
from sluice.broker.throttling.scope import EVERYTHING, Scope
from sluice.client.config import admin_config
from sluice.client.network.connection import Cancelable
from sluice.config.broker_config import Config
from sluice.proxy.sasl.authentication import LIFETIME_SINCE
from sluice.proxy.server import ProxyOptions, ProxyServer
from sluice.proxy.upstream.cluster import UpstreamBroker, UpstreamCluster, UpstreamTopic
from sluice.proxy.upstream.connection import UpstreamConnection
from sluice.proxy.upstream.connector import UpstreamConnector
from tests.support.virtual_broker import Client, VirtualBroker


class VirtualUpstream(UpstreamCluster):
    """The brokers of a VirtualBroker, without requests."""

    def __init__(self, broker: VirtualBroker, properties: Mapping[str, str]) -> None:
        self._broker = broker
        self.brokers = {
            node_id: UpstreamBroker(node_id, "upstream", server.endpoints[0].port)
            for node_id, server in broker.cluster_server.servers.items()
        }
        self.cluster_id, self.controller_id = broker.cluster.cluster_id, broker.cluster.controller_id
        self.config = admin_config({"bootstrap.servers": "upstream:9092", **properties})
        self.authenticate_versions = dict.fromkeys(self.brokers, LIFETIME_SINCE)
        self.features, self.features_epoch = dict(broker.cluster.features.by_name), broker.cluster.features.epoch

    async def topics(self, names: Collection[str], ids: Collection[bytes]) -> list[UpstreamTopic]:
        return [
            UpstreamTopic(topic.name, topic.topic_id, len(topic.partitions))
            for topic in self._broker.cluster.topics.values()
            if topic.name in names or topic.topic_id in ids
        ]

    async def close(self) -> None:
        pass


class UpstreamTransport(asyncio.Transport):
    """What an upstream connection writes to: a client of the upstream broker."""

    def __init__(self, connection: UpstreamConnection, client: "UpstreamClient") -> None:
        super().__init__()
        self.reading = True
        self.was_reset = False
        self.sent = bytearray()
        self._connection = connection
        self._client = client
        self._loop = client.broker.loop
        self._is_closing = False
        self._received = bytearray()
        client.on_bytes = self.receive
        client.on_lost = self.end

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self._is_closing
        self.sent += data
        self._client.receive_bytes(bytes(data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True
        self._loop.call_soon(self._deliver)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self.end(None)
            self._loop.call_soon(self._client.end_soon)

    def abort(self) -> None:
        self.was_reset = True
        self.close()

    def end(self, error: Exception | None) -> None:
        """End the connection, as the upstream broker does."""
        if not self._is_closing:
            self._is_closing = True
            self._loop.call_soon(self._connection.connection_lost, error)

    def receive(self, data: bytes) -> None:
        self._received += data
        self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        while self._received and self.reading and not self._is_closing:
            buffer = self._connection.get_buffer(-1)
            size = min(len(buffer), len(self._received))
            buffer[:size] = self._received[:size]
            del self._received[:size]
            self._connection.buffer_updated(size)


class UpstreamClient(Client):
    on_lost: Callable[[Exception | None], None]

    def receive_bytes(self, data: bytes) -> None:
        """Send bytes, from within the loop."""
        self._sent += data
        self.broker.loop.call_soon(self.deliver)

    def end_soon(self) -> None:
        self._ended = True
        self.deliver()

    def lost(self, error: Exception | None) -> None:
        super().lost(error)
        self.on_lost(error)


class VirtualConnector(UpstreamConnector):
    def __init__(self, upstream: VirtualBroker, properties: Mapping[str, str], *, passes_sasl: bool) -> None:
        cluster, loop = VirtualUpstream(upstream, properties), upstream.loop
        super().__init__(cluster, loop, passes_sasl=passes_sasl)  # type: ignore[arg-type]  # as of VirtualBroker
        self._broker = upstream
        self.transports: list[UpstreamTransport] = []
        self.delay_ms = 0.0  # of a connection
        self.refuses = False
        self._last_port = 60_000

    def connect(self, node_id: int, connection: UpstreamConnection) -> Cancelable:
        return self._broker.loop.call_later(self.delay_ms / 1e3, lambda: self._made(node_id, connection))

    def _made(self, node_id: int, connection: UpstreamConnection) -> None:
        if self.refuses:
            connection.failed("refused")
            return
        self._last_port += 1
        client = UpstreamClient(self._broker, "", self._last_port, self._broker.cluster_server.servers[node_id])
        transport = UpstreamTransport(connection, client)
        self.transports.append(transport)
        connection.connection_made(transport)
        connection.connected(self._authentication(node_id), lambda: None)


class VirtualProxy(VirtualBroker):
    """`upstream` is a VirtualBroker with the same clock and loop; `overrides` are properties of the proxy.

    `properties` are those of the proxy as a client.
    """

    def __init__(
        self,
        *overrides: str,
        upstream: VirtualBroker | None = None,
        properties: Mapping[str, str] | None = None,
        passes_sasl: bool = False,
        scope: Scope = EVERYTHING,
    ) -> None:
        self.upstream = upstream = VirtualBroker("sluice.journal.events=1000") if upstream is None else upstream
        self.clock, self.loop = upstream.clock, upstream.loop
        self.connector = VirtualConnector(upstream, properties or {}, passes_sasl=passes_sasl)
        versions = {node_id: broker.advertised for node_id, broker in upstream.cluster_server.brokers.items()}
        config = Config.load(None, ["listeners=PLAINTEXT://127.0.0.1:0", *overrides])
        self.cluster_server: ProxyServer = ProxyServer(
            config,
            self.clock,
            Random(0),
            self.loop,  # type: ignore[arg-type]  # as of VirtualBroker
            lambda: None,  # type: ignore[arg-type,return-value]  # without a page
            self.connector,
            versions,
            ProxyOptions({}, {}, None, scope=scope),
        )
        self.cluster = self.cluster_server.cluster
        self.run(ClusterServer.start(self.cluster_server))
        self.broker = next(iter(self.cluster_server.brokers.values()))
        self.server = self.cluster_server.servers[self.broker.node_id]
        self._next_port = 50_000

    def topic(self, *args: Any, **options: Any) -> Topic:
        return self.upstream.topic(*args, **options)

    def partition(self, topic: str = "t", index: int = 0) -> Partition:
        return self.upstream.partition(topic, index)


def proxy_with_topic(*overrides: str, **options: Any) -> VirtualProxy:
    """Return a proxy in front of a broker with a topic, by default t with one partition."""
    proxy = VirtualProxy(*overrides)
    proxy.topic(**options)
    return proxy
