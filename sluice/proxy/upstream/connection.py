"""The connection to an upstream broker that belongs to one client connection.

Requests are written in the client's order, and the responses come back in it. There are two ways to forward a request:

- *Together*: the next request is forwarded, too, before the response. What the context knows of the request is kept
  with it (`InFlight`) and put back when the response arrives.
- *Alone*, if a fault rule or a quota may act on it: it is forwarded after the responses to all earlier ones, and the
  client's connection is parked until its own, as on a broker of our own.

The connection ends with the client's, and the client's with it: by a TCP reset if it was reset.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from struct import Struct
from typing import Protocol, cast

from msgspec import Struct as Record

from sluice.broker.exchange.route import Route
from sluice.broker.journal.journal import Journal
from sluice.broker.network.connection import Connection
from sluice.broker.network.socket_transport import SocketTransport, reset_at_close
from sluice.broker.requests.context import ENDED, NO_RESPONSE, Outcome, RequestContext, Wait
from sluice.broker.requests.long_request import LongRequest, LongRequests
from sluice.broker.requests.route import SASL_TOKEN
from sluice.broker.requests.trace import RequestAnnotations, RequestSubject
from sluice.client.errors import KafkaException
from sluice.client.network.connection import Cancelable, ResponsePool
from sluice.clock import Clock
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.frame import SCRATCH_BYTES, FrameReader
from sluice.protocol.message import Message
from sluice.proxy.mutations import Mutations
from sluice.proxy.sasl.authentication import Authentication
from sluice.proxy.sasl.observer import SaslObserver

from .forwarded_route import ForwardedRoute
from .relay import LEAST_BYTES, Pipes, Relay, without_records
from .traffic import UpstreamTraffic

# Requests that may be in flight together. Java's producer allows at most 5 with idempotence; librdkafka has no limit.
_MOST_IN_FLIGHT = 1000
# Requests that wait for the connection to be made, or for the upstream broker to read, may have as many bytes, and one
# more: as much as the system buffers by itself.
_MOST_UNSENT_BYTES = 1 << 20
# As long, what a client that has left sent before waits for the authentication: `request.timeout.ms` of Kafka.
_AUTHENTICATION_MS = 30_000
_TOKEN = SaslAuthenticateRequest()  # in place of the request, for a SASL token without a header
_SIZE = Struct(">i")
_CORRELATION_ID = Struct(">i")
# Requests up to this size are joined.
JOIN_BYTES = 64 * 1024
# Their responses are long because of records, which are not decoded. Others of up to SCRATCH_BYTES take up to 20 ms.
FETCHES = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})


class InFlight(Record, eq=False, gc=False):
    """A forwarded request that waits for its response, and the state of its context."""

    route: ForwardedRoute
    version: int
    correlation_id: int
    request_bytes: int
    request: Message
    sent_ms: float
    is_alone: bool
    started_ms: float
    subject: RequestSubject | None
    annotations: RequestAnnotations | None
    is_exempt: bool  # from quotas
    is_relayed: bool = False  # whether the client has the response already


class ForwardedContext(RequestContext):
    __slots__ = ("is_exempt", "mutations", "names_unknown_broker", "sasl", "upstream")
    is_exempt: bool  # whether quotas do not apply to the request
    names_unknown_broker: bool  # whether the last response names a broker without a port at the proxy
    upstream: "UpstreamConnection"
    mutations: Mutations | None  # the charges of the last request that creates or deletes partitions
    sasl: SaslObserver | None  # of an authentication that passes through the proxy


class Forwarding(Protocol):
    """The exchange of a proxy."""

    @property
    def clock(self) -> Clock: ...
    @property
    def journal(self) -> Journal | None: ...
    @property
    def long_requests(self) -> LongRequests: ...
    @property
    def traffic(self) -> UpstreamTraffic: ...
    @property
    def pipes(self) -> Pipes | None:
        """Pipes for records of Fetch responses, unless a quota charges these, or the system has no such pipes."""

    @property
    def reading(self) -> "UpstreamConnection | None":
        """The connection of the client whose read is handled; the end of the read calls its `send_unsent`."""

    def is_alone(self, route: Route) -> bool:
        """Return whether a fault rule or a quota may act on the requests of a route."""

    def look_up(self, names: list[str], ids: list[bytes], respond: Callable[[Mapping[str, int]], None]) -> None:
        """Ask the cluster for topics; `respond` gets the number of partitions of those that exist."""

    def received(self, ctx: ForwardedContext, sent: InFlight, view: memoryview, start: int, end: int) -> None:
        """Respond to a request with the upstream's response. Raises RemoteProtocolError if it is malformed."""

    def read_long(
        self, ctx: ForwardedContext, sent: InFlight, view: memoryview, start: int, end: int
    ) -> tuple[LongRequest, Callable[[], None]]:
        """Return the work of reading a long response, for slices, and the function that then responds."""

    def dispatch_held(self, ctx: ForwardedContext, frame: bytes) -> None:
        """Handle a request that had to wait for the responses to earlier ones."""

    def received_token(self, ctx: ForwardedContext, token: bytes) -> None:
        """Send the upstream's response to a SASL token without a header."""

    def rejects(self, problem: str) -> None:
        """Report a malformed response."""

    def connect(self, connection: "UpstreamConnection") -> Cancelable:
        """Start to connect."""

    def connected(self) -> None:
        """Count a connection that is ready for requests."""

    def failed_to_connect(self, reason: str) -> None:
        """Count a connection that could not be made, and report the first one in a row."""


Ends = tuple[tuple[str, int], tuple[str, int]]  # hosts and ports of a connection


def ends_of(transport: asyncio.Transport, first: str, second: str) -> Ends:
    """Return the addresses of a connection, in the order of these names of `get_extra_info`."""
    one, other = transport.get_extra_info(first), transport.get_extra_info(second)
    return one[:2], other[:2]


class UpstreamConnection(asyncio.BufferedProtocol):
    def __init__(
        self, exchange: Forwarding, ctx: ForwardedContext, pool: ResponsePool, max_response_bytes: int
    ) -> None:
        self._exchange = exchange
        self._traffic = exchange.traffic
        self._ctx = ctx
        self._pool = pool
        self._reader = FrameReader(pool, max_response_bytes)
        self._transport: asyncio.Transport | None = None
        self._attempt: Cancelable | None = None  # to connect, from the first request on
        self._authentication: Authentication | None = None  # if the proxy authenticates itself
        self._on_lost: Callable[[], object] | None = None
        self._authenticates_at_ms = inf  # again, monotonic
        self._session_ends = False  # the held request waits until the proxy has authenticated itself again
        self._is_ready = False  # connected and authenticated
        self._unsent: list[bytes] = []
        self._unsent_bytes = 0
        self._held = b""  # the request that waits, and whether it does until none is in flight
        self._held_is_alone = False
        self._is_closed = False
        self._is_full = False
        self._long: tuple[LongRequest, Callable[[], None]] | None = None  # the response that is read in slices
        self._relay: Relay | None = None
        self._client = ctx.session.connection
        self.in_flight: deque[InFlight] = deque()
        self.passes_tokens = False  # whether the client sends SASL tokens without headers

    @property
    def client_ends(self) -> Ends:
        """The addresses of the client's connection: the client's, and the proxy's."""
        assert isinstance(self._client, Connection)
        assert self._client.transport is not None
        return ends_of(self._client.transport, "peername", "sockname")

    @property
    def is_full(self) -> bool:
        """Whether the next request has to wait before it can be sent."""
        return (
            self._is_full
            or self._unsent_bytes >= _MOST_UNSENT_BYTES
            or len(self.in_flight) >= _MOST_IN_FLIGHT
            or self._session_ends
            or self._client.started_ms >= self._authenticates_at_ms
        )

    # -- called by the exchange ----------------------------------------------------------------------------------------

    def forward(self, request: Message) -> Outcome:
        ctx, exchange = self._ctx, self._exchange
        route: ForwardedRoute = ctx.route  # type: ignore[assignment]  # the exchange sets it
        frame = route.frame_of(ctx, request)
        if self._is_closed:
            self._end_client()
            return ENDED
        if isinstance(request, ProduceRequest) and request.acks == 0:
            self._write(frame)
            return NO_RESPONSE
        is_alone = ctx.fault is not None or exchange.is_alone(route)  # the rule may be over already
        connection, trace = ctx.session.connection, ctx.session.trace
        sent = InFlight(
            route,
            ctx.version,
            ctx.correlation_id,
            ctx.request_bytes,
            request,
            exchange.clock.monotonic_ms(),
            is_alone,
            connection.started_ms,
            None,
            None,
            ctx.is_exempt,
        )
        self.in_flight.append(sent)
        self._write(frame)
        if is_alone:
            return Wait(self.close)
        connection.owed += 1
        if trace is not None and exchange.journal is not None:
            exchange.journal.parked(ctx)
            sent.subject, trace.subject = trace.subject, None
            sent.annotations, trace.annotations = trace.annotations, None
        return ENDED

    def look_up(
        self, names: list[str], ids: list[bytes], respond: Callable[[Mapping[str, int]], Message | Outcome]
    ) -> Wait:
        """Ask the cluster for topics, and continue the request with the number of partitions of those that exist."""
        ctx = self._ctx
        respond_soon = partial(self._exchange.look_up, names, ids, lambda found: ctx.resume(partial(respond, found)))
        return Wait(self.close, respond_soon)

    def hold(self, frame: bytes, *, is_alone: bool) -> None:
        """Handle a request when there is room for it, and if `is_alone`, after the responses to all earlier ones.

        Until then, the client's connection is parked.
        """
        self._held, self._held_is_alone = frame, is_alone
        self._client.park(self.close)
        if self._client.started_ms >= self._authenticates_at_ms:
            self._session_ends, self._authenticates_at_ms = True, inf
            self._authenticate_again()

    def forward_token(self, token: bytes) -> None:
        """Forward a SASL token without a header; the client's connection is parked until the response."""
        ctx = self._ctx
        ctx.route = SASL_TOKEN
        route, now_ms = cast(ForwardedRoute, SASL_TOKEN), self._exchange.clock.monotonic_ms()
        self.in_flight.append(InFlight(route, 0, 0, len(token), _TOKEN, now_ms, True, now_ms, None, None, True))
        self._write(_SIZE.pack(len(token)) + token)
        self._client.park(self.close)

    def restore(self, sent: InFlight) -> None:
        """Put a forwarded request back into the context."""
        ctx = self._ctx
        ctx.route, ctx.version = sent.route, sent.version
        ctx.correlation_id, ctx.request_bytes = sent.correlation_id, sent.request_bytes
        ctx.error_code = 0
        ctx.is_exempt = sent.is_exempt
        ctx.session.connection.started_ms = sent.started_ms
        trace = ctx.session.trace
        if trace is not None:
            trace.subject, trace.annotations = sent.subject, sent.annotations

    def close(self) -> None:
        """End the connection once it is ready and what the client has sent before is sent."""
        self._is_closed = True
        if self._is_ready or not self._unsent:
            self._end()
        elif self._transport is not None:
            self._end_later()

    def client_lost(self, error: Exception | None) -> None:
        """End the connection with the client's, by a TCP reset if the client has reset its own."""
        if isinstance(error, ConnectionResetError):
            self._reset()
        else:
            self.close()
        self.in_flight.clear()

    # -- asyncio callbacks ---------------------------------------------------------------------------------------------

    def connected(self, authentication: Authentication | None, on_lost: Callable[[], object]) -> None:
        """Begin to send, after the authentication, if any; `on_lost` is called at the end of the connection."""
        self._attempt = None
        if self._transport is None:  # lost already
            on_lost()
            return
        self._on_lost = on_lost
        self._authentication = authentication
        if authentication is None:
            self._ready()
            return
        self._write_now(authentication.first_request())
        if self._is_closed:  # by the client, meanwhile
            self._end_later()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._traffic.open += 1
        transport.set_write_buffer_limits(_MOST_UNSENT_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_relay()
        self._transport = None
        if self._on_lost is not None:
            self._on_lost()
        self._traffic.open -= 1
        self._reader.close()
        if not self._is_closed:
            self._is_closed = True
            self._traffic.disconnects += 1
            self._end_client(is_reset=isinstance(exc, ConnectionResetError))

    def failed(self, reason: str) -> None:
        """End the client's connection, as no connection to the upstream broker was made."""
        self._exchange.failed_to_connect(reason)
        self._is_closed = True
        self._end_client()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        self._traffic.bytes_received += nbytes
        if self._reader.received(nbytes):
            self._receive_frames()

    def _receive_frames(self) -> None:
        reader, connection = self._reader, self._client
        try:
            if self._long is not None:
                self._run_slice(*self._long)
            while self._long is None and not self._is_over and reader.next_frame():
                if reader.end == reader.filled:  # faster than `has_rest`
                    self._receive(reader.view, reader.start, reader.end)
                    break
                connection.join_responses()
                self._receive(reader.view, reader.start, reader.end)
        except KafkaException as error:
            self._exchange.failed_to_connect(str(error))
            self._end()
            self._end_client()
        except RemoteProtocolError as error:
            self._exchange.rejects(str(error))
            self._end()
            self._end_client()
        except Exception:
            self._end()
            connection.fail()
        connection.send_joined()
        if self._is_over:
            reader.drop_rest()
        elif self._long is None and self.in_flight:
            view, size = reader.incomplete
            if size - len(view) >= LEAST_BYTES:
                self._relay_rest(view, size)
        reader.keep_rest()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._dispatch_held()

    # -- details -------------------------------------------------------------------------------------------------------

    @property
    def _is_over(self) -> bool:
        """Whether no response is read any more; those to the proxy's authentication are read after the client's end."""
        return self._is_closed and (self._is_ready or not self._unsent)

    def _end(self) -> None:
        self._stop_relay()
        self._is_closed = True
        self._unsent = []
        if self._transport is not None:
            self._transport.close()
        elif self._attempt is not None:
            self._attempt.cancel()

    def _end_later(self) -> None:
        """End the connection of a client that has left, if the upstream broker does not answer the authentication."""
        clock = self._exchange.clock
        clock.call_at(clock.monotonic_ms() + _AUTHENTICATION_MS, self._end)

    def _receive(self, view: memoryview, start: int, end: int) -> None:
        """Handle one response. Raises RemoteProtocolError if it is malformed."""
        if view is self._pool.scratch:  # the next read overwrites it
            view = memoryview(bytes(view[start:end]))
            start, end = 0, len(view)
        if self._authentication is not None and self._authentication.is_running:
            self._authenticate(self._authentication, view[start:end])
            return
        if not self.in_flight:
            raise RemoteProtocolError(f"a response of {end - start} bytes without a request")
        sent = self.in_flight.popleft()
        if sent.route is SASL_TOKEN:
            self._exchange.received_token(self._ctx, bytes(view[start:end]))
            return
        if end - start < _CORRELATION_ID.size:
            raise RemoteProtocolError(f"a response of {end - start} bytes; expected at least {_CORRELATION_ID.size}")
        (correlation_id,) = _CORRELATION_ID.unpack_from(view, start)
        if correlation_id != sent.correlation_id:
            raise RemoteProtocolError(f"correlation id {correlation_id}; expected {sent.correlation_id}")
        ctx = self._ctx
        if sent.is_alone:
            self._exchange.received(ctx, sent, view, start, end)
        elif end - start > SCRATCH_BYTES and sent.route.api_key not in FETCHES:
            self.in_flight.appendleft(sent)  # a response of the proxy itself must not overtake it
            self._long = self._exchange.read_long(ctx, sent, view, start, end)
            self._run_slice(*self._long)
        else:
            self._restore_answered(sent)
            self._exchange.received(ctx, sent, view, start, end)
            self._responded()

    def _relay_rest(self, start: memoryview, size: int) -> None:
        """Let the rest of a response pass without being read, if that is possible; `start` is what was received."""
        sent, client, pipes = self.in_flight[0], self._client, self._exchange.pipes
        if pipes is None or sent.is_alone or sent.route.api_key != ApiKey.FETCH or client.is_sending:
            return
        assert isinstance(client, Connection)
        source, sink = self._transport, client.transport
        if not isinstance(source, SocketTransport) or not isinstance(sink, SocketTransport):
            return
        sink.send_deferred()
        is_shaped = sink.get_protocol() is not client
        if is_shaped or sink.get_write_buffer_size() or start[4:8] != _CORRELATION_ID.pack(sent.correlation_id):
            return
        frame = without_records(start, size, sent.route)
        if frame is None:
            return
        try:
            self._relay = Relay(source, client, pipes, start, size - len(start), self._relayed, self._end_relay)
        except OSError:  # too many open files
            return
        self._reader.replace(frame)

    def _relayed(self, moved: int) -> None:
        self._traffic.bytes_received += moved

    def _end_relay(self) -> None:
        self._relay = None
        self.in_flight[0].is_relayed = True
        self._client.sent_ahead = self._reader.filled
        self._receive_frames()

    def _stop_relay(self) -> None:
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.stop()

    def _run_slice(self, long: LongRequest, respond: Callable[[], None]) -> None:
        """Read a long response for one slice; none of the connection's others is read until it is sent."""
        requests = self._exchange.long_requests
        if self._is_closed:
            self._long = None
            requests.cancel(long)
        elif requests.run_slice(long):
            self._long = None
            self._restore_answered(self.in_flight.popleft())
            respond()
            self._responded()
            if long.suspended:
                self._resume_reading()
        else:
            if self._transport is not None:
                self._transport.pause_reading()
            requests.run_later(long, self._receive_frames)

    def _restore_answered(self, sent: InFlight) -> None:
        self.restore(sent)
        self._client.owed -= 1

    def _responded(self) -> None:
        connection = self._ctx.session.connection
        if connection.is_sending and self._transport is not None:  # until the client reads
            self._transport.pause_reading()
            connection.on_sent = self._resume_reading
        if self._session_ends:
            self._authenticate_again()
        elif self._held:
            self._dispatch_held()
        elif not connection.owed and not connection.waiting and not connection.closed:
            connection.answered()

    def _authenticate(self, authentication: Authentication, response: memoryview) -> None:
        request = authentication.next_request(response)
        if request is not None:
            self._write_now(request)
            return
        self._session_ends = False
        self._authenticates_at_ms = authentication.repeat_at_ms(self._exchange.clock.monotonic_ms())
        self._ready()

    def _authenticate_again(self) -> None:
        """Begin once no request is in flight; the held request follows."""
        authentication = self._authentication
        if authentication is not None and not authentication.is_running and not self.in_flight:
            self.send_unsent()
            self._write_now(authentication.first_request())

    def _resume_reading(self) -> None:
        """Resume reading, unless the client does not read, or a long response is read."""
        connection = self._ctx.session.connection
        if not connection.is_sending:
            connection.on_sent = None
            if self._transport is not None and self._long is None:
                self._transport.resume_reading()

    def _dispatch_held(self) -> None:
        frame = self._held
        if not frame or self.is_full or (self._held_is_alone and self.in_flight) or self._is_closed:
            return
        self._held = b""
        self._exchange.dispatch_held(self._ctx, frame)

    def _ready(self) -> None:
        if not self._is_ready:
            self._is_ready = True
            self._exchange.connected()
        self.send_unsent()
        if self._is_closed:  # by the client, meanwhile
            self._end()
        self._dispatch_held()

    def _write(self, frame: bytes) -> None:
        self._unsent.append(frame)
        self._unsent_bytes += len(frame)
        if self._exchange.reading is None or self._unsent_bytes >= JOIN_BYTES:
            self.send_unsent()

    def _write_now(self, frame: bytes) -> None:
        if self._transport is not None:
            self._traffic.bytes_sent += len(frame)
            self._transport.write(memoryview(frame))  # until Python 3.12, unsent bytes of others are copied twice

    def send_unsent(self) -> None:
        """Send the requests of one read of the client's connection together."""
        unsent = self._unsent
        if not unsent:
            return
        if self._is_ready:
            self._unsent, self._unsent_bytes = [], 0
            self._write_now(unsent[0] if len(unsent) == 1 else b"".join(unsent))
        elif self._attempt is None and self._transport is None and not self._is_closed:
            self._attempt = self._exchange.connect(self)

    def _end_client(self, *, is_reset: bool = False) -> None:
        connection = self._ctx.session.connection
        if connection.closed:
            return
        if is_reset:
            connection.reset("the upstream broker reset the connection")
        else:
            connection.close_reason = "the upstream broker closed the connection"
            connection.abort()

    def _reset(self) -> None:
        self._stop_relay()
        self._is_closed = True
        if self._transport is None and self._attempt is not None:
            self._attempt.cancel()
        if self._transport is not None:
            reset_at_close(self._transport)
            self._transport.abort()
