"""Makes the connections to upstream brokers: TCP, TLS, and the proxy's own SASL authentication."""

import asyncio
import logging
import ssl

from sluice.client.network import sasl
from sluice.client.network.connection import ResponsePool
from sluice.client.network.tls import tls_context

from .authentication import Authentication
from .traffic import UpstreamTraffic
from .upstream_cluster import UpstreamBroker, UpstreamCluster
from .upstream_connection import UpstreamConnection

log = logging.getLogger("sluice.proxy")


class UpstreamConnector:
    def __init__(self, upstream: UpstreamCluster, loop: asyncio.AbstractEventLoop) -> None:
        self.pool = ResponsePool()
        self.upstream = upstream
        self._loop = loop
        self._tls: ssl.SSLContext | None = tls_context(upstream.config) if upstream.config.uses_tls else None
        self._tasks: set[asyncio.Task[None]] = set()  # the event loop keeps only weak references
        self._unreachable: set[int] = set()  # node ids

    def connect(self, node_id: int, connection: UpstreamConnection, traffic: UpstreamTraffic) -> None:
        task = self._loop.create_task(self._connect(node_id, connection, traffic))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def is_reachable(self, node_id: int) -> bool:
        """Return whether the last connection to a broker was made."""
        return node_id not in self._unreachable

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _connect(self, node_id: int, connection: UpstreamConnection, traffic: UpstreamTraffic) -> None:
        broker, config = self.upstream.brokers[node_id], self.upstream.config
        name = broker.host if self._tls is not None else None
        try:
            await self._loop.create_connection(
                lambda: connection, broker.host, broker.port, ssl=self._tls, server_hostname=name
            )
        except OSError as error:
            traffic.failures += 1
            self._failed(broker, error)
            connection.failed()
            return
        traffic.connections += 1
        if node_id in self._unreachable:
            self._unreachable.remove(node_id)
            log.info("upstream broker reachable again", extra={"broker": node_id})
        authentication = None
        if config.uses_sasl:
            authentication = Authentication(sasl.conversation(config.text("sasl.mechanism"), config.sasl_options()))
        connection.connected(authentication)

    def _failed(self, broker: UpstreamBroker, error: OSError) -> None:
        """Log the first failed connection in a row, as clients try again and again."""
        if broker.node_id not in self._unreachable:
            self._unreachable.add(broker.node_id)
            address = f"{broker.host}:{broker.port}"
            log.warning(
                "upstream broker unreachable",
                extra={"broker": broker.node_id, "address": address, "reason": error.strerror or str(error)},
            )
