"""Makes the connections to upstream brokers: TCP, TLS, and the proxy's own SASL authentication.

A broker to which a connection could not be made is *lost* until a probe connects to it: the proxy closes its ports
meanwhile, so that its clients back off as from the broker itself. Probes have the backoff of a client (KIP-144). Those
of a broker that was probably removed, as the cluster has not listed it for a minute, become rarer, up to one a minute,
until it is listed again.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Collection, Coroutine
from contextlib import suppress
from functools import partial
from random import Random  # noqa: TID251  (for jitter)

from sluice.broker.network.socket_transport import SocketTransport
from sluice.client.backoff import RETRY_JITTER, RETRY_MULTIPLIER, ExponentialBackoff
from sluice.client.errors import KafkaException
from sluice.client.network import sasl
from sluice.client.network.asyncio_network import connect_error
from sluice.client.network.connection import Cancelable, ResponsePool
from sluice.client.network.tls import tls_context
from sluice.proxy.sasl.authentication import Authentication

from .cluster import UpstreamBroker, UpstreamCluster, UpstreamTopic
from .connection import Ends, UpstreamConnection, ends_of
from .relay import Pipes

log = logging.getLogger("sluice.proxy")

# Longer than brokers take to restart.
_REMOVED_AFTER_S = 60.0
_LONGEST_PROBE_BACKOFF_MS = 60_000
_LEADS_BACK = "the address leads back to this proxy; check advertised.listeners of the broker"


class _Unread(asyncio.Protocol):
    """Leaves all received bytes to the socket's next transport."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()


class UpstreamConnector:
    def __init__(self, upstream: UpstreamCluster, loop: asyncio.AbstractEventLoop, *, passes_sasl: bool) -> None:
        self.passes_sasl = passes_sasl  # clients authenticate themselves; else the proxy does, if configured
        self.pool = ResponsePool()
        self.pipes = Pipes()
        self.upstream = upstream
        self._loop = loop
        self._tls: ssl.SSLContext | None = tls_context(upstream.config) if upstream.config.uses_tls else None
        self._is_direct = self._tls is None and isinstance(loop, asyncio.SelectorEventLoop)
        self._tasks: set[asyncio.Task[None]] = set()
        self._unreachable: set[int] = set()  # node ids
        # Both addresses of each connection -> node id. The own one alone can be that of a client's connection, too: the
        # system gives the same port to connections to different addresses.
        self._ends: dict[Ends, int] = {}
        self._looped: dict[int, UpstreamBroker] = {}  # brokers whose address leads back to the proxy
        uniform = Random().uniform  # noqa: S311  (for jitter)
        self._backoff = upstream.config.reconnect_backoff(uniform)
        first_ms = upstream.config.integer("reconnect.backoff.max.ms")
        self._removed_backoff = ExponentialBackoff(
            first_ms, RETRY_MULTIPLIER, _LONGEST_PROBE_BACKOFF_MS, RETRY_JITTER, uniform
        )
        self._probes: dict[int, asyncio.TimerHandle] = {}  # the last one of each lost broker, by node id
        self._listed_s: dict[int, float] = {}  # when the cluster last listed a lost broker, or since it is lost
        self._removed: dict[int, int] = {}  # failed probes since, by node id of brokers that were probably removed
        # Called with the id of a broker when it is lost, and when it is found again.
        self.on_lost: Callable[[int], None] = lambda _: None
        self.on_found: Callable[[int], None] = lambda _: None

    def connect(self, node_id: int, connection: UpstreamConnection) -> Cancelable:
        """Start to connect, unless the proxy itself is the client or the broker."""
        looped = self._ends.get(connection.client_ends)
        if looped is not None:
            self._looped[looped] = self.upstream.brokers[looped]
        if looped is not None or self._looped.get(node_id) == self.upstream.brokers[node_id]:
            return self._loop.call_soon(connection.failed, _LEADS_BACK)
        return self._start(self._connect(node_id, connection))

    def look_up(self, names: list[str], ids: list[bytes], respond: Callable[[list[UpstreamTopic]], None]) -> None:
        """Ask the cluster for topics; without an answer, none exists."""

        async def ask() -> None:
            found: list[UpstreamTopic] = []
            with suppress(KafkaException):
                found = await self.upstream.topics(names, ids)
            respond(found)

        self._start(ask())

    def is_reachable(self, node_id: int) -> bool:
        """Return whether the last connection to a broker was made."""
        return node_id not in self._unreachable

    @property
    def lost_brokers(self) -> Collection[int]:
        """The node ids of the lost brokers."""
        return self._probes.keys()

    @property
    def may_return(self) -> bool:
        """Whether a broker is lost and was probably not removed."""
        return len(self._probes) > len(self._removed)

    def listed(self, node_ids: Collection[int]) -> None:
        """Note the brokers that the cluster lists now, and probe a removed one that has returned."""
        now_s = self._loop.time()
        for node_id in self._probes:
            if node_id in node_ids:
                self._listed_s[node_id] = now_s
                if self._removed.pop(node_id, None) is not None:
                    self._probes[node_id].cancel()
                    self._probe_later(node_id, 0)
            elif now_s - self._listed_s[node_id] >= _REMOVED_AFTER_S:
                self._removed.setdefault(node_id, 0)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for probe in self._probes.values():
            probe.cancel()
        self.pipes.close()

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

    def lose(self, node_id: int) -> None:
        """Begin to probe a broker, unless it is lost already."""
        if node_id not in self._probes:
            self._unreachable.add(node_id)
            self._listed_s[node_id] = self._loop.time()
            self._probe_later(node_id, 0)
            self.on_lost(node_id)

    async def _connect(self, node_id: int, connection: UpstreamConnection) -> None:
        try:
            transport = await self._open(node_id, _Unread if self._is_direct else lambda: connection)
            if self._is_direct:
                transport = self._direct(transport, connection)
        except KafkaException as error:
            connection.failed(str(error))
            self.lose(node_id)
            return
        ends = ends_of(transport, "sockname", "peername")
        self._ends[ends] = node_id
        connection.connected(self._authentication(node_id), partial(self._ends.pop, ends, None))

    async def _open(self, node_id: int, protocol: Callable[[], asyncio.BaseProtocol]) -> asyncio.Transport:
        """Connect to a broker. Raises KafkaException."""
        broker, config = self.upstream.brokers[node_id], self.upstream.config
        name = broker.host if self._tls is not None else None
        try:
            async with asyncio.timeout(config.integer("socket.connection.setup.timeout.ms") / 1e3):
                transport, _ = await self._loop.create_connection(
                    protocol, broker.host, broker.port, ssl=self._tls, server_hostname=name
                )
        except TimeoutError:
            raise KafkaException("connection setup timed out") from None
        except OSError as error:
            raise KafkaException(str(connect_error(error, uses_tls=self._tls is not None))) from None
        except (OverflowError, ValueError) as error:  # no valid port, no valid host name
            raise KafkaException(str(error)) from None
        return transport

    def _direct(self, connected: asyncio.Transport, connection: UpstreamConnection) -> asyncio.Transport:
        """Move a connection to a transport of our own; asyncio's takes a fifth of the proxy's time for a request."""
        own = connected.get_extra_info("socket").dup()
        transport = SocketTransport(self._loop, own, connection, connected.get_extra_info("peername"))
        connected.abort()
        transport.start()
        return transport

    def _probe_later(self, node_id: int, failures: int) -> None:
        removed = self._removed.get(node_id)
        if removed is None:
            delay_s = self._backoff.backoff(failures) / 1e3
        else:
            delay_s = self._removed_backoff.backoff(removed) / 1e3
            self._removed[node_id] = removed + 1
        self._probes[node_id] = self._loop.call_later(delay_s, lambda: self._start(self._probe(node_id, failures + 1)))

    async def _probe(self, node_id: int, failures: int) -> None:
        try:
            transport = await self._open(node_id, asyncio.Protocol)
        except KafkaException:
            self._probe_later(node_id, failures)
            return
        transport.close()
        del self._probes[node_id]
        self._removed.pop(node_id, None)
        self.reached(node_id)
        self.on_found(node_id)

    def _start(self, coroutine: Coroutine[object, None, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)  # the event loop keeps only a weak reference
        task.add_done_callback(self._tasks.discard)
        return task

    def _authentication(self, node_id: int) -> Authentication | None:
        config = self.upstream.config
        if self.passes_sasl or not config.uses_sasl:
            return None
        conversations = sasl.conversations(config.text("sasl.mechanism"), config.sasl_options())
        return Authentication(conversations, self.upstream.authenticate_versions.get(node_id, 0))
