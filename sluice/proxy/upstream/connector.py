"""Makes the connections to upstream brokers: TCP, TLS, and the proxy's own SASL authentication."""

import asyncio
import logging
import ssl
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from sluice.client.errors import KafkaException
from sluice.client.network import sasl
from sluice.client.network.asyncio_network import connect_error
from sluice.client.network.connection import Cancelable, ResponsePool
from sluice.client.network.tls import tls_context
from sluice.proxy.sasl.authentication import Authentication

from .cluster import UpstreamBroker, UpstreamCluster, UpstreamTopic
from .connection import Ends, UpstreamConnection, ends_of

log = logging.getLogger("sluice.proxy")

_LEADS_BACK = "the address leads back to this proxy; check advertised.listeners of the broker"


class UpstreamConnector:
    def __init__(self, upstream: UpstreamCluster, loop: asyncio.AbstractEventLoop, *, passes_sasl: bool) -> None:
        self.passes_sasl = passes_sasl  # clients authenticate themselves; else the proxy does, if configured
        self.pool = ResponsePool()
        self.upstream = upstream
        self._loop = loop
        self._tls: ssl.SSLContext | None = tls_context(upstream.config) if upstream.config.uses_tls else None
        self._tasks: set[asyncio.Task[None]] = set()  # the event loop keeps only weak references
        self._unreachable: set[int] = set()  # node ids
        # Both addresses of each connection -> node id. The own one alone can be that of a client's connection, too: the
        # system gives the same port to connections to different addresses.
        self._ends: dict[Ends, int] = {}
        self._looped: dict[int, UpstreamBroker] = {}  # brokers whose address leads back to the proxy

    def connect(self, node_id: int, connection: UpstreamConnection) -> Cancelable:
        """Start to connect, unless the proxy itself is the client or the broker."""
        looped = self._ends.get(connection.client_ends)
        if looped is not None:
            self._looped[looped] = self.upstream.brokers[looped]
        if looped is not None or self._looped.get(node_id) == self.upstream.brokers[node_id]:
            return self._loop.call_soon(connection.failed, _LEADS_BACK)
        task = self._loop.create_task(self._connect(node_id, connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def look_up(self, names: list[str], ids: list[bytes], respond: Callable[[list[UpstreamTopic]], None]) -> None:
        """Ask the cluster for topics; without an answer, none exists."""

        async def ask() -> None:
            found: list[UpstreamTopic] = []
            with suppress(KafkaException):
                found = await self.upstream.topics(names, ids)
            respond(found)

        task = self._loop.create_task(ask())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def is_reachable(self, node_id: int) -> bool:
        """Return whether the last connection to a broker was made."""
        return node_id not in self._unreachable

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def reached(self, node_id: int) -> None:
        if node_id in self._unreachable:
            self._unreachable.remove(node_id)
            log.info("upstream broker reachable again", extra={"broker": node_id})

    def failed(self, node_id: int, reason: str) -> None:
        """Log the first failed connection in a row, as clients try again and again."""
        if node_id not in self._unreachable:
            self._unreachable.add(node_id)
            broker = self.upstream.brokers[node_id]
            address = f"{broker.host}:{broker.port}"
            log.warning("upstream broker unreachable", extra={"broker": node_id, "address": address, "reason": reason})

    async def _connect(self, node_id: int, connection: UpstreamConnection) -> None:
        broker, config = self.upstream.brokers[node_id], self.upstream.config
        name = broker.host if self._tls is not None else None
        try:
            async with asyncio.timeout(config.integer("socket.connection.setup.timeout.ms") / 1e3):
                transport, _ = await self._loop.create_connection(
                    lambda: connection, broker.host, broker.port, ssl=self._tls, server_hostname=name
                )
        except TimeoutError:
            connection.failed("connection setup timed out")
            return
        except OSError as error:
            connection.failed(str(connect_error(error, uses_tls=self._tls is not None)))
            return
        except (OverflowError, ValueError) as error:  # no valid port, no valid host name
            connection.failed(str(error))
            return
        ends = ends_of(transport, "sockname", "peername")
        self._ends[ends] = node_id
        connection.connected(self._authentication(node_id), partial(self._ends.pop, ends, None))

    def _authentication(self, node_id: int) -> Authentication | None:
        config = self.upstream.config
        if self.passes_sasl or not config.uses_sasl:
            return None
        conversations = sasl.conversations(config.text("sasl.mechanism"), config.sasl_options())
        return Authentication(conversations, self.upstream.authenticate_versions.get(node_id, 0))
