"""The TCP listeners and connections of one broker."""

import asyncio
import socket
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from sluice.broker.broker import Broker
from sluice.broker.exchange.exchange import Exchange
from sluice.config.broker_config import Endpoint
from sluice.errors import SluiceError
from sluice.protocol.frame import FramePool, FrameReader
from sluice.quotas.store import Address

from .acceptor import Acceptor
from .connection import Connection
from .listener import Listener
from .shaped_transport import ShapedTransport, shape_transport
from .slow_frames import SlowFrames
from .unsent_responses import PROPERTY as UNSENT_RESPONSE_BYTES
from .unsent_responses import UnsentResponses

if TYPE_CHECKING:
    from .channel_builder import ChannelBuilder
    from .tls_transport import TlsTransport

# For tests that open a thousand connections at once.
BACKLOG = 1024
# Acceptor properties, checked here because the acceptor is created only if one is set.
_LIMITS = (
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "max.connection.creation.rate",
)
# The interval of checks for idle connections is a tenth of `connections.max.idle.ms` within these limits.
_SHORTEST_IDLE_CHECK_MS, _LONGEST_IDLE_CHECK_MS = 100, 5_000
# For responses in flight: a stop must complete within a second.
STOP_GRACE_S = 0.2


class SocketServer:
    def __init__(self, broker: Broker, exchange: Exchange, loop: asyncio.AbstractEventLoop) -> None:
        config = broker.config
        self.broker = broker
        self.exchange = exchange
        self.connections: dict[Connection, None] = {}
        self.accepted = 0
        # Called with each new and each ended connection, for fault rules.
        self.on_connected: Callable[[Connection], None] | None = None
        self.on_disconnected: Callable[[Connection], None] | None = None
        self.endpoints: list[Endpoint] = []
        self.acceptor: Acceptor | None = None  # None until a connection limit is set
        self.channel_builders: list[ChannelBuilder] = []
        self.listeners: dict[str, Listener] = {}  # by name
        # For fault rules: called with the name of a TLS listener and a new client, before the TLS handshake.
        self.accept_hooks: list[Callable[[str, ShapedTransport], None]] = []
        self._closed = False
        self._held: list[ShapedTransport] | None = None  # while traffic is held
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped: asyncio.Future[None] | None = None
        self._journal = broker.journal
        self._loop = loop
        self._turns = broker.cluster.runtime.turns
        # An event loop without real sockets (sluice.testing) provides its own bind().
        self._bind: Callable[[str, int, int], socket.socket] = getattr(loop, "bind", bind)
        budget = config.integer("queued.max.request.bytes")
        self._pool = FramePool(budget if budget >= 0 else None)
        SlowFrames(self._pool, self.connections, broker.scheduler)
        limit = config.integer(UNSENT_RESPONSE_BYTES)
        self._unsent_responses = UnsentResponses(limit if limit >= 0 else None)
        broker.cluster.logs.budget.retained_by.append(self._unsent_responses.close_readers_of)
        self._max_frame_bytes = config.integer("socket.request.max.bytes")
        self._max_idle_ms = config.integer("connections.max.idle.ms")
        self._idle_check_ms = max(_SHORTEST_IDLE_CHECK_MS, min(self._max_idle_ms // 10, _LONGEST_IDLE_CHECK_MS))

    async def start(self, listeners: Iterable[Endpoint], advertised: Iterable[Endpoint]) -> None:
        """Bind every listener and accept connections.

        `advertised`: the addresses for clients, where they differ from the bound ones. Raises SluiceError if an address
        cannot be bound; `stop` then releases the others.
        """
        advertised_by_name = {endpoint.name: endpoint for endpoint in advertised}
        self.channel_builders.clear()
        for listener, builder in [(listener, self._channel_builder(listener)) for listener in listeners]:
            listening = self._bind(listener.host, listener.port, BACKLOG)
            bound = Endpoint(listener.name, listener.host, listening.getsockname()[1])
            self.endpoints.append(bound)
            given = advertised_by_name.get(bound.name, bound)
            self.broker.endpoints[bound.name] = Endpoint(given.name, given.host, given.port or bound.port)
            self.broker.cluster.metadata_generation += 1
            connect = partial(self._connection, self.broker.endpoints[bound.name])
            accept = connect if builder is None else partial(builder.accept, connect)
            factory = partial(self._accept, bound.name, accept)
            is_tls = self.broker.config.security_protocol(bound.name).endswith("SSL")
            bound_listener = self.listeners[bound.name] = Listener(
                bound, factory, listening, BACKLOG, self._loop, is_tls=is_tls
            )
            await bound_listener.listen()
        self._limit_connections()
        self.broker.on_configured.append(self._limit_connections)
        self.broker.cluster.quota_stores.of_addresses.follow(self._limit_address)
        self._close_idle()

    def refuse(self, name: str) -> Callable[[], None]:
        """Refuse a listener's new clients until the returned function is called."""
        listener = self.listeners[name]
        listener.refuse()
        return partial(self._listen_again, listener)

    def hold(self) -> Callable[[], None]:
        """Neither read nor send on any connection, open or new, until the returned function is called."""
        self._held = []
        for connection in [*self.connections]:
            self._hold(connection, self._held)
        return self._release

    def _hold(self, connection: Connection, held: list[ShapedTransport]) -> None:
        transport = shape_transport(connection, self.broker)
        if transport is not None:
            transport.hold()
            held.append(transport)

    def _release(self) -> None:
        held, self._held = self._held, None
        for transport in held or ():
            transport.release()

    def _listen_again(self, listener: Listener) -> None:
        task = self._loop.create_task(listener.listen_again())
        self._tasks.add(task)  # the event loop keeps only a weak reference
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        self._closed = True
        self.broker.close()
        self.broker.cluster.quota_stores.of_addresses.unfollow(self._limit_address)
        if self._unsent_responses.close_readers_of in self.broker.cluster.logs.budget.retained_by:  # not closed before
            self.broker.cluster.logs.budget.retained_by.remove(self._unsent_responses.close_readers_of)
        for listener in self.listeners.values():
            listener.close()
        for connection in list(self.connections):
            connection.abort()

    def cut(self) -> None:
        for connection in list(self.connections):
            connection.cut()
        for builder in self.channel_builders:
            builder.close()

    async def stop(self) -> None:
        self.close()
        if self.connections:
            self._stopped = self._loop.create_future()
            await asyncio.wait([self._stopped], timeout=STOP_GRACE_S)
        self.cut()

    def _close_idle(self) -> None:
        """Close connections idle for `connections.max.idle.ms`, now and periodically.

        As on Kafka, a connection whose client waits for a response is idle, too.
        """
        if self._max_idle_ms < 0:
            return
        oldest_ms = self.broker.clock.monotonic_ms() - self._max_idle_ms
        for connection in list(self.connections):
            if connection.last_active_ms < oldest_ms:
                if connection.closed:  # its client does not read the last responses
                    connection.cut()
                else:
                    connection.abort()
        self.broker.scheduler.schedule_once(self._idle_check_ms, self._close_idle)

    def _channel_builder(self, listener: Endpoint) -> "ChannelBuilder | None":
        """Return None for PLAINTEXT. Raises ConfigError."""
        if self.broker.config.security_protocol(listener.name) == "PLAINTEXT":
            return None
        from .channel_builder import ChannelBuilder

        builder = ChannelBuilder(self.broker, self.exchange, listener.name, self._loop.call_soon)
        self.channel_builders.append(builder)
        return builder

    def _accept(self, listener: str, accept: "Callable[[], Connection | TlsTransport]") -> asyncio.BufferedProtocol:
        above = accept()
        if not self.accept_hooks or isinstance(above, Connection):
            return above
        return ShapedTransport(above, self.broker, partial(self._run_accept_hooks, listener))

    def _run_accept_hooks(self, listener: str, transport: "ShapedTransport") -> None:
        for hook in self.accept_hooks:
            hook(listener, transport)

    def _connection(self, advertised: Endpoint) -> Connection:
        reader = FrameReader(self._pool, self._max_frame_bytes)
        connection = Connection(
            self.exchange, reader, advertised, self._turns, self._unsent_responses, self._made, self._lost
        )
        self.connections[connection] = None
        self.accepted += 1
        return connection

    def _made(self, connection: Connection) -> None:
        if self._journal is not None:
            self._journal.opened(connection.ctx)
        if self._closed:  # accepted during the close, or late after a TLS handshake: no request would be answered
            connection.cut()
            return
        if self._held is not None:
            self._hold(connection, self._held)
        if self.on_connected is not None:
            self.on_connected(connection)
        if self.acceptor is not None and not connection.closed:
            self.acceptor.on_connect(connection)

    def _lost(self, connection: Connection, error: Exception | None) -> None:
        self.connections.pop(connection, None)
        self.exchange.disconnected(connection.ctx, error)
        if self._journal is not None:
            self._journal.closed(connection.ctx)
        if self.on_disconnected is not None:
            self.on_disconnected(connection)
        if self.acceptor is not None:
            self.acceptor.on_disconnect(connection)
        if self._stopped is not None and not self.connections and not self._stopped.done():
            self._stopped.set_result(None)

    def _limit_connections(self) -> None:
        config = self.broker.config
        own = [f"listener.name.{endpoint.name.lower()}.{name}" for endpoint in self.endpoints for name in _LIMITS]
        if self.acceptor is not None or any(map(config.is_set, (*_LIMITS, *own))):
            self._accept_limited().configure(config)

    def _limit_address(self, address: Address, rate: float | None) -> None:
        self._accept_limited().limit_address(address, rate)

    def _accept_limited(self) -> "Acceptor":
        if self.acceptor is None:
            self.acceptor = Acceptor(self.broker, [endpoint.name for endpoint in self.endpoints], self.connections)
        return self.acceptor


def bind(host: str, port: int, backlog: int) -> socket.socket:
    try:
        # getaddrinfo skips the IDNA codec for bytes.
        name = host.encode() if host.isascii() else host
        address = socket.getaddrinfo(name or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # With the protocol number: asyncio disables Nagle's algorithm only for sockets declared as TCP.
        listening = socket.socket(address[0], address[1], address[2])
    except (OSError, UnicodeError) as error:
        raise SluiceError(f"cannot listen on {host}:{port}: {_why(error)}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address[4])
        listening.listen(backlog)
        listening.setblocking(False)
    except (OSError, OverflowError) as error:
        listening.close()
        raise SluiceError(f"cannot listen on {host}:{port}: {_why(error)}") from None
    return listening


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
