"""The event-driven NetworkClient (Kafka's NetworkClient). `Connector` and `Clock` hide sockets and the event loop.

Times are `clock.monotonic_ms()`.

*Sending.* `ready(node, now_ms)` returns whether a request can be sent, and starts to connect if possible. It is False
- while metadata is due, which goes first;
- while the connection is set up, including ApiVersions;
- during a reconnect backoff (KIP-144) or a throttle (KIP-219);
- with `max_in_flight` requests in flight, or a full write buffer.

If it is True, `send(node_id, request, on_complete, now_ms)` sends immediately, in the latest common version.
`on_complete(exchange)` is called exactly once, never within `send`, with `exchange.response` or a failure:
- `disconnected`: the connection was lost;
- `timed_out`: no response in time; the connection is closed, and all its requests fail;
- `error`: there is no common version.

*Waiting.* `listen(callback)` reports each change. Only time ends a backoff or a throttle:
`poll_delay_ms(node_id, now_ms)` returns when to check again. `AsyncNetwork` has coroutines for both:

    while True:
        until_ms = sender.run_once(clock.monotonic_ms())     # sends to ready nodes; returns when to run again
        await network.wait(until_ms)                         # returns earlier after a change

*Timeouts* share one timer: connection setup (KIP-601), requests, `connections.max.idle.ms`, metadata.

Different on purpose: an internal error closes the client (`fail`), so that each caller gets the cause at once; a
malformed response, or one with a wrong correlation id, closes the connection; `close_node` fails pending requests. In
the first two cases Kafka logs the error and continues; in the last it discards the requests.
"""

import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from random import Random  # noqa: TID251  (the type of an argument; nothing is drawn from the module)
from struct import error as StructError  # noqa: N812  (a class)
from typing import NamedTuple, Protocol

from sluice.client.config import ClientConfig
from sluice.client.errors import AuthenticationException, KafkaException, UnsupportedVersionException
from sluice.client.metadata.cluster import Node
from sluice.client.metadata.metadata import Metadata
from sluice.clock import Clock, TimerHandle
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sluice.protocol.apis.header import ResponseHeader
from sluice.protocol.codec.compile import decode_prefix, decoder
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.request_frame import frame_parts
from sluice.version import __version__

from . import sasl
from .connection import Cancelable, Connection, ResponsePool
from .connection_states import Address, ClusterConnectionStates
from .in_flight import Exchange, OnComplete, Request
from .metadata_updater import LeastLoadedNode, MetadataUpdater
from .node_api_versions import NodeApiVersions
from .throttle_metrics import ThrottleTimes
from .tls import CHECK_PROTOCOL

log = logging.getLogger("sluice.client")

SOFTWARE_NAME = "sluice"


def software_version(version: str) -> str:
    """Return a version valid for ApiVersions (KIP-511): letters, digits, dots, hyphens."""
    return re.sub(r"[^a-zA-Z0-9.-]", "-", version)


SOFTWARE_VERSION = software_version(__version__)

_LATEST_API_VERSIONS = API_KEYS[ApiKey.API_VERSIONS].max_version

_LARGEST_CORRELATION_ID = 2**31 - 1


class ConnectionFailure(NamedTuple):
    node: Node
    reason: str
    is_malformed: bool = False  # the first response is not Kafka's

    def __str__(self) -> str:
        return f"{self.node}: {self.reason}"


class Connector(Protocol):
    """A factory of connections. Its callbacks run later, never within the call."""

    def resolve(self, host: str, port: int, resolved: Callable[[Sequence[Address] | OSError], None]) -> Cancelable:
        """Resolve a host to its addresses, or to an error."""

    def connect(self, address: Address, connection: Connection, failed: Callable[[Exception], None]) -> Cancelable:
        """Connect, including TLS; call `connection.connection_made` or `failed`."""

    async def close(self) -> None:
        """Cancel pending attempts."""


class NetworkClient:
    def __init__(
        self,
        config: ClientConfig,
        metadata: Metadata,
        clock: Clock,
        connector: Connector,
        random: Random,
        *,
        max_in_flight: int,
        software_version: str,
    ) -> None:
        self.metadata = metadata
        self.clock = clock
        self.states = ClusterConnectionStates(
            config.reconnect_backoff(random.uniform), config.connection_setup_timeout(random.uniform)
        )
        self.throttle_times = ThrottleTimes(
            config.integer("metrics.num.samples"), config.integer("metrics.sample.window.ms")
        )
        self.request_timeout_ms = config.integer("request.timeout.ms")
        self._client_id = config.text("client.id")
        self._max_in_flight = max_in_flight
        self._max_idle_ms = config.integer("connections.max.idle.ms")
        self._software_version = software_version
        self._sasl = (
            sasl.conversations(config.text("sasl.mechanism"), config.sasl_options()) if config.uses_sasl else None
        )
        self._connector = connector
        self._random = random
        self._pool = ResponsePool()
        self._connections: dict[int, Connection] = {}
        self._versions: dict[int, NodeApiVersions] = {}
        self._listeners: list[Callable[[], None]] = []
        self._updater = MetadataUpdater(self, config)
        self._timer: TimerHandle | None = None
        self._due_ms = inf
        self.is_closed = False
        self.failure: KafkaException | None = None
        self.last_failure: ConnectionFailure | None = None  # after all addresses of a host; None once a node is ready
        metadata.bootstrap(config.names("bootstrap.servers"))
        metadata.on_update_requested = self.wakeup  # the first update request starts the first connection

    # -- queries -------------------------------------------------------------------------------------------------------

    def ready(self, node: Node, now_ms: float) -> bool:
        if self.is_ready(node.id, now_ms):
            return True
        if not self.is_closed and self.states.can_connect(node.id, now_ms):
            self.initiate_connect(node, now_ms)
        return False

    def is_ready(self, node_id: int, now_ms: float) -> bool:
        return self.can_send(node_id, now_ms) and not self._updater.is_due(now_ms)

    def connection_failed(self, node_id: int) -> bool:
        return self.states.is_disconnected(node_id)

    def authentication_error(self, node_id: int) -> Exception | None:
        connection = self.states.get(node_id)
        return None if connection is None else connection.authentication_error

    def poll_delay_ms(self, node_id: int, now_ms: float) -> float:
        return self.states.poll_delay_ms(node_id, now_ms)

    def in_flight(self, node_id: int | None = None) -> int:
        if node_id is None:
            return sum(len(connection.in_flight) for connection in self._connections.values())
        connection = self._connections.get(node_id)
        return 0 if connection is None else len(connection.in_flight)

    def api_versions(self, node_id: int) -> NodeApiVersions | None:
        return self._versions.get(node_id)

    def least_loaded_node(self, now_ms: float) -> LeastLoadedNode:
        """Return the node with the fewest requests in flight; else a connecting one, else the least recently tried."""
        nodes = list(self.metadata.cluster.nodes.values())
        first = self._random.randrange(len(nodes)) if nodes else 0  # distributes clients over nodes
        fewest: tuple[int, Node] | None = None
        connecting: Node | None = None
        connectable: tuple[float, Node] | None = None
        is_any_ready = False
        for node in nodes[first:] + nodes[:first]:
            is_any_ready = is_any_ready or self.states.is_ready(node.id, now_ms)
            if self.can_send(node.id, now_ms):
                in_flight = self.in_flight(node.id)
                if fewest is None or in_flight < fewest[0]:
                    fewest = in_flight, node
            elif self.states.is_preparing(node.id):
                connecting = node
            elif self.states.can_connect(node.id, now_ms):
                tried_ms = self.states.last_connect_attempt_ms(node.id)
                if connectable is None or tried_ms < connectable[0]:
                    connectable = tried_ms, node
        found = (fewest and fewest[1]) or connecting or (connectable and connectable[1])
        return LeastLoadedNode(found, is_any_ready)

    # -- sending -------------------------------------------------------------------------------------------------------

    def send(self, node_id: int, request: Request, on_complete: OnComplete, now_ms: float) -> Exchange:
        assert self.can_send(node_id, now_ms), f"{request.api.name} to node {node_id}, which is not ready"
        exchange = Exchange(node_id, request, on_complete, now_ms, request.timeout_ms or self.request_timeout_ms)
        try:
            exchange.version = self._versions[node_id].latest_usable(request.api, request.oldest, request.latest)
            message = request.build(exchange.version)
            self._write(self._connections[node_id], exchange, message)
        except UnsupportedVersionException as error:
            exchange.error = error
        except (StructError, TypeError, ValueError, AttributeError, OverflowError) as error:
            exchange.error = KafkaException(f"{request.api.name}: the request cannot be encoded: {error}")
        else:
            return exchange
        self.clock.call_at(now_ms, partial(self._not_sent, exchange))
        return exchange

    def disconnect(self, node_id: int) -> None:
        """Close a connection as a failure; its pending requests fail."""
        if node_id in self._connections:
            self._disconnected(node_id, "closed by the client")

    def close_node(self, node_id: int) -> None:
        """Close a connection after sending written data, without a reconnect backoff."""
        connection = self._connections.pop(node_id, None)
        self._versions.pop(node_id, None)
        self.states.remove(node_id)
        if connection is not None:
            connection.close()
            self._fail_in_flight(connection, timed_out=False)

    def close(self) -> None:
        self.is_closed = True
        for node_id in list(self._connections):
            self.close_node(node_id)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._changed()

    def fail(self, what: str, error: BaseException) -> None:
        if self.failure is None:
            log.error(f"{what} failed", exc_info=error)
            self.failure = KafkaException(f"{what} failed: {error!r}; the client is closed. Create another one.")
            self.failure.__cause__ = error
            self.close()

    def listen(self, callback: Callable[[], None]) -> None:
        self._listeners.append(callback)

    def wakeup(self) -> None:
        self._arm(self.clock.monotonic_ms())

    def can_send(self, node_id: int, now_ms: float) -> bool:
        """Return whether a request can be sent, even if metadata is due."""
        connection = self._connections.get(node_id)
        return (
            connection is not None
            and not connection.is_paused
            and len(connection.in_flight) < self._max_in_flight
            and self.states.is_ready(node_id, now_ms)
        )

    def _write(self, connection: Connection, exchange: Exchange, message: Message) -> None:
        exchange.correlation_id = connection.next_correlation_id
        connection.next_correlation_id = (connection.next_correlation_id + 1) & _LARGEST_CORRELATION_ID
        parts, size = frame_parts(
            message, exchange.version, client_id=self._client_id, correlation_id=exchange.correlation_id
        )
        connection.last_active_ms = exchange.sent_ms
        connection.in_flight.append(exchange)
        connection.write(parts, size)
        self._arm(exchange.expires_ms)
        if not exchange.request.expects_response and not connection.is_paused:
            self.clock.call_at(exchange.sent_ms, partial(self._written, connection))

    def _not_sent(self, exchange: Exchange) -> None:
        self._complete(exchange)
        self._changed()

    def _written(self, connection: Connection) -> None:
        unanswered = [exchange for exchange in connection.in_flight if not exchange.request.expects_response]
        for exchange in unanswered:
            connection.in_flight.remove(exchange)
            exchange.received_ms = self.clock.monotonic_ms()
            self._complete(exchange)
        self._changed()

    def _complete(self, exchange: Exchange) -> None:
        try:
            exchange.on_complete(exchange)
        except Exception as error:
            self.fail(f"the handler of {exchange.api.name} responses", error)

    # -- connecting ----------------------------------------------------------------------------------------------------

    def initiate_connect(self, node: Node, now_ms: float) -> None:
        state = self.states.connecting(node.id, now_ms, node.host)
        connection = self._connections[node.id] = Connection(node, self, self._pool, now_ms)
        address = state.next_address()
        if address is None:
            resolved = partial(self._resolved, connection)
            connection.attempt = self._connector.resolve(node.host, node.port, resolved)
        else:
            self._open(connection, address)
        self._arm(now_ms + state.connection_setup_timeout_ms + 1)

    def _resolved(self, connection: Connection, addresses: Sequence[Address] | OSError) -> None:
        if isinstance(addresses, OSError):
            self._could_not_connect(connection, addresses)
            return
        state = self.states.get(connection.node_id)
        assert state is not None, "a resolution without an attempt"
        state.resolved(addresses)
        address = state.next_address()
        assert address is not None, "a resolution without addresses"
        self._open(connection, address)

    def _open(self, connection: Connection, address: Address) -> None:
        failed = partial(self._could_not_connect, connection)
        connection.attempt = self._connector.connect(address, connection, failed)

    def _could_not_connect(self, connection: Connection, error: Exception) -> None:
        if connection.is_closed:
            return
        if isinstance(error, AuthenticationException):
            self._disconnected(connection.node_id, str(error), authentication_error=error)
        else:
            self._disconnected(connection.node_id, f"could not connect: {error}")

    def connection_made(self, connection: Connection) -> None:
        """Start authentication, or request the broker's versions (KIP-35)."""
        if self._sasl is None:
            self._send_api_versions_request(connection, _LATEST_API_VERSIONS)
        else:
            self._send_sasl_request(connection, self._sasl())

    def _send_sasl_request(
        self, connection: Connection, conversation: sasl.Conversation, received: Message | None = None
    ) -> None:
        try:
            message = next(conversation) if received is None else conversation.send(received)
        except StopIteration:
            self._send_api_versions_request(connection, _LATEST_API_VERSIONS)
            return
        except KafkaException as error:  # as in Kafka, an error of another kind may be transient
            failure = error if isinstance(error, AuthenticationException) else None
            self._disconnected(connection.node_id, str(error), authentication_error=failure)
            return
        request = sasl.request_of(message)
        now_ms = self.clock.monotonic_ms()

        def handle(exchange: Exchange) -> None:
            if exchange.response is not None:
                self._send_sasl_request(connection, conversation, exchange.response)

        exchange = Exchange(connection.node_id, request, handle, now_ms, self.request_timeout_ms)
        self._write(connection, exchange, message)

    def _send_api_versions_request(self, connection: Connection, version: int) -> None:
        now_ms = self.clock.monotonic_ms()
        self.states.checking_api_versions(connection.node_id)
        message = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=self._software_version)
        request = Request(ApiKey.API_VERSIONS, lambda _version: message, latest=version)
        exchange = Exchange(
            connection.node_id, request, self._handle_api_versions_response, now_ms, self.request_timeout_ms
        )
        self._write(connection, exchange, message)

    def _handle_api_versions_response(self, exchange: Exchange) -> None:
        response, node_id = exchange.response, exchange.node_id
        if not isinstance(response, ApiVersionsResponse):
            return
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and exchange.version > 0:
            # Since 2.4, brokers return their versions with this error; older ones support version 0.
            known = (api.max_version for api in response.api_keys if api.api_key == ApiKey.API_VERSIONS)
            self._send_api_versions_request(self._connections[node_id], next(known, 0))
        elif response.error_code:
            self._disconnected(node_id, f"ApiVersions failed with error {response.error_code}")
        else:
            self._versions[node_id] = NodeApiVersions(response)
            self._connections[node_id].accept_large_responses()
            self.states.ready(node_id)
            self.last_failure = None
            self._arm(self.clock.monotonic_ms())

    # -- responses and disconnects -------------------------------------------------------------------------------------

    def frame_received(self, connection: Connection, view: memoryview, start: int, end: int) -> None:
        """Complete the oldest request in flight."""
        now_ms = self.clock.monotonic_ms()
        connection.last_active_ms = now_ms
        in_flight = connection.in_flight
        while in_flight and not in_flight[0].request.expects_response:
            self._complete(in_flight.popleft())  # it was written: a later request has a response
        if not in_flight:
            raise RemoteProtocolError("a response without a request")
        exchange = in_flight[0]
        exchange.response = response = _decoded(connection, exchange, view, start, end)
        in_flight.popleft()
        exchange.received_ms = now_ms
        throttle_time_ms: int = getattr(response, "throttle_time_ms", 0)
        self.throttle_times.record(connection.node_id, throttle_time_ms, now_ms)
        if throttle_time_ms > 0 and exchange.api.client_throttles(exchange.version):
            for other in in_flight:
                other.throttled_ms += throttle_time_ms
            self.states.throttle(connection.node_id, now_ms + throttle_time_ms)
        self._complete(exchange)
        self._changed()

    def connection_writable(self, connection: Connection) -> None:
        self._written(connection)

    def connection_broken(self, connection: Connection, error: RemoteProtocolError) -> None:
        if not connection.is_closed:
            self._disconnected(connection.node_id, str(error), is_malformed=connection.node_id not in self._versions)

    def connection_lost(self, connection: Connection, error: Exception | None) -> None:
        node_id = connection.node_id
        refusal = error if isinstance(error, AuthenticationException) and node_id not in self._versions else None
        reason = str(error or "the broker closed the connection")
        answered = connection.next_correlation_id - len(connection.in_flight)
        if refusal is None and connection.in_flight and (node_id not in self._versions or answered <= 1):
            reason += f"; {CHECK_PROTOCOL}"  # as of a broker that requires SASL, which responds to ApiVersions only
        self._disconnected(node_id, reason, authentication_error=refusal)

    def _disconnected(
        self,
        node_id: int,
        reason: str,
        *,
        timed_out: bool = False,
        is_malformed: bool = False,
        authentication_error: AuthenticationException | None = None,
    ) -> None:
        now_ms = self.clock.monotonic_ms()
        connection = self._connections.pop(node_id)
        connection.abort()
        log.info("disconnected", extra={"client_id": self._client_id, "node": node_id, "reason": reason})
        self.states.disconnected(node_id, now_ms)
        state = self.states.get(node_id)
        assert state is not None
        if state.is_last_address:
            self.last_failure = ConnectionFailure(connection.node, reason, is_malformed)
        if authentication_error is not None:
            self.states.authentication_failed(node_id, now_ms, authentication_error)
            self.metadata.fatal_error(authentication_error)
        self._versions.pop(node_id, None)
        # Before the requests fail, as in Kafka: an update that one of them requests was not due at the disconnect.
        self._updater.disconnected(now_ms)
        self._fail_in_flight(connection, timed_out=timed_out)
        self._changed()

    def _fail_in_flight(self, connection: Connection, *, timed_out: bool) -> None:
        now_ms = self.clock.monotonic_ms()
        failed = list(connection.in_flight)
        connection.in_flight.clear()
        for exchange in failed:
            exchange.received_ms = now_ms
            exchange.disconnected = True
            exchange.timed_out = timed_out
            self._complete(exchange)

    def _changed(self) -> None:
        for callback in self._listeners:
            callback()

    # -- timers --------------------------------------------------------------------------------------------------------

    def _arm(self, at_ms: float) -> None:
        if at_ms >= self._due_ms or self.is_closed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due_ms = at_ms
        self._timer = self.clock.call_at(at_ms, self._tick)

    def _tick(self) -> None:
        try:
            self._run_timers()
        except Exception as error:
            self.fail("the timer of the client", error)

    def _run_timers(self) -> None:
        now_ms = self.clock.monotonic_ms()
        self._timer, self._due_ms = None, inf
        self._close_expired(now_ms)
        self._arm(now_ms + self._updater.update(now_ms))
        for connection in self._connections.values():
            self._arm(self._next_due_ms(connection))

    def _next_due_ms(self, connection: Connection) -> float:
        if self.states.is_connecting(connection.node_id):
            state = self.states.get(connection.node_id)
            assert state is not None
            return state.last_connect_attempt_ms + state.connection_setup_timeout_ms + 1
        idle_ms = connection.last_active_ms + self._max_idle_ms if self._max_idle_ms >= 0 else inf
        return min(idle_ms, *(exchange.expires_ms for exchange in connection.in_flight), inf)

    def _close_expired(self, now_ms: float) -> None:
        for connection in list(self._connections.values()):
            if connection.is_closed:  # by a callback of another connection's failure
                continue
            node_id, idle_ms = connection.node_id, now_ms - connection.last_active_ms
            expired = next((exchange for exchange in connection.in_flight if exchange.expires_ms <= now_ms), None)
            if expired is not None:
                reason = f"{expired.api.name}: no response within {expired.timeout_ms} ms"
                self._disconnected(node_id, reason, timed_out=True)
            elif self.states.is_connecting(node_id):
                if self.states.is_connection_setup_timeout(node_id, now_ms):
                    self._disconnected(node_id, "connection setup timed out", timed_out=True)
            elif 0 <= self._max_idle_ms <= idle_ms:
                self._disconnected(node_id, "idle")


def _decoded(connection: Connection, exchange: Exchange, view: memoryview, start: int, end: int) -> Message:
    api, version = exchange.api, exchange.version
    header_version = api.response_header_version(version)
    header, position = decode_prefix(ResponseHeader, header_version)(view, start, end)
    if header.correlation_id != exchange.correlation_id:
        raise RemoteProtocolError(
            f"{api.name}: correlation id: expected {exchange.correlation_id}, got {header.correlation_id}"
        )
    if api.key == ApiKey.FETCH and connection.is_overwritten(view):
        # The next read overwrites its records; a response this small is copied as a whole.
        view, position, end = memoryview(bytes(view[position:end])), 0, end - position
    elif api.key == ApiKey.API_VERSIONS and version > 0:
        version = _version_of_api_versions(view, position, end, version)
    return decoder(api.response, version)(view, position, end)


def _version_of_api_versions(view: memoryview, position: int, end: int, version: int) -> int:
    """Return the version of a response: a broker without it responds in version 0 (KIP-511)."""
    error_code = int.from_bytes(view[position : min(position + 2, end)], signed=True)
    return 0 if error_code == ErrorCode.UNSUPPORTED_VERSION else version
