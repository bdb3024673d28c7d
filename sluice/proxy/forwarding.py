"""The exchange of a proxy: the handler of every API forwards the request to the upstream broker.

All else is the exchange of a broker: fault rules act before and after the handler, quotas charge the response, the
journal records it. A request is sent on as it was received, and decoded only where something reads it. A response is
decoded, but sent on as it was received unless a fault rule, a quota, or the proxy has changed it: addresses, and the
versions in ApiVersions.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, cast

from msgspec import structs

from sluice.broker.broker import Broker, Handle
from sluice.broker.exchange.exchange import Exchange
from sluice.broker.exchange.registry import HANDLERS, Handler
from sluice.broker.exchange.response_cache import Encoded, encoding_unless_kept
from sluice.broker.exchange.route import Route
from sluice.broker.exchange.routes import Routes
from sluice.broker.requests.channel import Channel
from sluice.broker.requests.context import FetchOutcome, Outcome, RequestContext
from sluice.broker.requests.served_api import ServedApi
from sluice.broker.requests.session import Session
from sluice.broker.requests.trace import RequestTrace
from sluice.broker.throttling.throttler import ChargeResponse
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sluice.protocol.apis.fetch import FetchRequest, FetchResponse
from sluice.protocol.apis.header import ResponseHeader
from sluice.protocol.apis.metadata import MetadataResponse
from sluice.protocol.codec.compile import decode_prefix, encoder
from sluice.protocol.error_codes import codes_in
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID

from .fetch_sessions import ForwardedSessions
from .upstream_connection import ForwardedContext, InFlight, UpstreamConnection

if TYPE_CHECKING:
    from .server import ProxyServer

log = logging.getLogger("sluice.proxy")

_HEADER = Struct(">ihhi")  # size, API key, version, correlation id
_API_AND_VERSION = Struct(">I")
_NO_TAGGED_FIELDS = b"\0"
# No request of a proxy is decoded in slices: few are decoded, and none larger than this unless a fault rule needs it.
_MOST_READ_BYTES = 1 << 20
_NEVER_LARGE = 2**31
# APIs whose requests the proxy itself reads.
_READ = frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.API_VERSIONS})
_FETCHES = frozenset({ApiKey.FETCH, ApiKey.SHARE_FETCH})


class ForwardingHandler(Handler):
    __slots__ = ("reads_requests",)

    def __init__(self, api_key: int, api: ServedApi, *, reads_requests: bool) -> None:
        super().__init__(api_key, "", api)
        self.reads_requests = reads_requests

    def load(self) -> Handle:
        return _forward


def _forward(ctx: RequestContext, request: Message, _: Broker) -> Outcome:
    return cast("ForwardedContext", ctx).upstream.forward(request)


def handlers_of(served: Mapping[int, tuple[int, int]], *, has_journal: bool) -> dict[int, Handler]:
    """Return the handler of each served API."""
    handlers: dict[int, Handler] = {}
    for key, (first, last) in served.items():
        api = HANDLERS[key].api if key in HANDLERS else ServedApi(API_KEYS[key].name, first, last)
        own = structs.replace(api, min_version=first, max_version=last, forwarded=False, cached=False)
        handlers[key] = ForwardingHandler(key, own, reads_requests=has_journal or key in _READ)
    return handlers


class ForwardedRoute(Route):
    """A route that keeps the frame of the request that it has decoded last."""

    __slots__ = ("_decode_request", "_end", "_last", "_reads", "_unread", "_view", "decode_response")

    def __init__(self, handler: Handler, version: int, charge: ChargeResponse) -> None:
        super().__init__(handler, version, charge)
        api = API_KEYS[self.api_key]
        self.inline_bytes = _NEVER_LARGE
        self.encode = encoding_unless_kept(self.encode)
        self.decode_response = decode_prefix(api.response, version)
        self._decode_request = self.decode
        self.decode = self._receive
        self._reads = not isinstance(handler, ForwardingHandler) or handler.reads_requests
        self._unread = self._last = api.request()  # in place of a request that nothing reads
        self._view = memoryview(b"")
        self._end = 0

    def frame_of(self, ctx: RequestContext, request: Message) -> bytes:
        """Return the frame to send for a request: as it was received if this is the last one, else encoded anew."""
        if request is self._last:
            body = self._view[self._end - ctx.request_bytes : self._end]
            return b"".join((body.nbytes.to_bytes(4, "big"), body))
        parts: list[bytes | memoryview] = [b"", ctx.session.id_as_sent]
        if self.flexible:
            parts.append(_NO_TAGGED_FIELDS)
        encoder(type(request), self.version)(request, parts)
        size = sum(map(len, parts)) + _HEADER.size - 4
        parts[0] = _HEADER.pack(size, self.api_key, self.version, ctx.correlation_id)
        return b"".join(parts)

    def _receive(self, view: memoryview, start: int, end: int) -> tuple[Message, int]:
        request = self._unread
        if self.has_faults or (self._reads and (end - start <= _MOST_READ_BYTES or self.api_key == ApiKey.PRODUCE)):
            request, _ = self._decode_request(view, start, end)
        self._last, self._view, self._end = request, view, end
        return request, end


class ForwardedFetch(FetchOutcome):
    """The response to a Fetch, which a quota may replace by an empty one (KIP-219)."""

    __slots__ = ("_opens_session", "charged_bytes", "is_from_follower", "response")

    def __init__(self, response: Message, *, opens_session: bool) -> None:
        self.response = response
        self.is_from_follower = False
        self.charged_bytes = 0
        self._opens_session = opens_session

    def sent(self) -> bool:
        return False

    def throttled(self, throttle_time_ms: int) -> Message:
        cls = type(self.response)
        # The client opens a session anew; the upstream's epoch of an open one counts, as in Kafka.
        session_id = 0 if self._opens_session else getattr(self.response, "session_id", 0)
        if issubclass(cls, FetchResponse):
            return cls(throttle_time_ms=throttle_time_ms, session_id=session_id)
        return cls(throttle_time_ms=throttle_time_ms)


class ForwardingExchange(Exchange):
    def __init__(self, broker: Broker, proxy: "ProxyServer") -> None:
        handlers = handlers_of(broker.served, has_journal=broker.journal is not None)
        super().__init__(broker, Routes(broker, handlers, ForwardedRoute))
        self._proxy = proxy
        self._sessions = ForwardedSessions(broker.metadata)
        broker.fetch_sessions = self._sessions  # type: ignore[assignment]  # only fault rules read it
        self._readers: dict[int, Callable[[ForwardedContext, InFlight, Message], bool]] = {
            ApiKey.API_VERSIONS: self._read_versions,
            ApiKey.METADATA: self._read_metadata,
            ApiKey.FETCH: self._read_fetch,
        }

    def context(self, connection: Channel) -> RequestContext:
        trace = None if self.journal is None else RequestTrace()
        ctx = ForwardedContext(Session(self._broker.node_id, connection, trace), self.resume)
        ctx.upstream = UpstreamConnection(self, ctx, self._proxy.pool)
        self._proxy.connect(self._broker.node_id, ctx.upstream)
        return ctx

    def dispatch(self, ctx: RequestContext, view: memoryview, start: int, end: int) -> None:
        upstream = cast("ForwardedContext", ctx).upstream
        if (upstream.in_flight or upstream.is_full) and (upstream.is_full or self._is_alone(view, start, end)):
            upstream.hold(bytes(view[start:end]))
        else:
            super().dispatch(ctx, view, start, end)

    def is_alone(self, route: Route) -> bool:
        """Return whether a fault rule or a quota may act on the requests of a route."""
        if route.has_faults:
            return True
        quotas = self._throttler.quotas
        if quotas.request is not None or self._throttler.controller.mutation is not None:
            return True
        if route.api_key == ApiKey.PRODUCE:
            return quotas.produce.quotas_enabled
        return route.api_key in _FETCHES and quotas.fetch.quotas_enabled

    def _is_alone(self, view: memoryview, start: int, end: int) -> bool:
        if end - start < _API_AND_VERSION.size:
            return True
        route = self.routes.find(*_API_AND_VERSION.unpack_from(view, start))
        return route is None or self.is_alone(route)

    # -- called by upstream connections ----------------------------------------------------------------------------------

    def dispatch_held(self, ctx: ForwardedContext, frame: bytes) -> None:
        """Handle a request that had to wait for the responses to earlier ones."""
        connection = ctx.session.connection
        connection.unpark()
        self.begin_read(ctx)
        try:
            super().dispatch(ctx, memoryview(frame), 0, len(frame))
        except RemoteProtocolError as error:
            connection.close(str(error))
        except Exception:
            connection.fail()
        self.end_read()
        if not connection.waiting and not connection.closed:
            connection.resume()

    def received(self, ctx: ForwardedContext, sent: InFlight, view: memoryview, start: int, end: int) -> None:
        """Respond to a request with what the upstream broker responds. Raises RemoteProtocolError if it is malformed."""
        route = sent.route
        position = start + route.header_bytes
        if position > start + 4 and (position > end or view[position - 1]):
            _, position = decode_prefix(ResponseHeader, 1)(view, start, end)
        response, _ = route.decode_response(view, position, end)
        self._proxy.answered(self._broker.node_id, route, self.clock.monotonic_ms() - sent.sent_ms, end - start)
        if sent.is_alone:
            ctx.resume(partial(self._read_response, ctx, sent, response, None))
            return
        ctx.now_ms = self.clock.wall_ms()
        self._charge_and_respond(ctx, self._read_response(ctx, sent, response, view[position:end]))

    def upstream_lost(self, upstream: UpstreamConnection, error: Exception | None) -> None:
        self._proxy.lost(self._broker.node_id, error)

    def rejects(self, upstream: UpstreamConnection, problem: str) -> None:
        log.warning("invalid response of the upstream broker", extra={"broker": self._broker.node_id, "reason": problem})

    # -- responses -----------------------------------------------------------------------------------------------------

    def _read_response(
        self, ctx: ForwardedContext, sent: InFlight, response: Message, body: memoryview | None
    ) -> Message | Outcome:
        """Return the response to send: `body`, if it is given and nothing was changed."""
        ctx.error_code = next(codes_in(response), 0)
        read = self._readers.get(sent.route.api_key)
        is_changed = read is not None and read(ctx, sent, response)
        rewrite = self._proxy.rewriter_of(sent.route.api_key, sent.route.version)
        if rewrite is not None and rewrite(response, partial(self._proxy.address_of, ctx.session)):
            is_changed = True
        if sent.is_alone and sent.route.api_key in _FETCHES:
            opens = isinstance(sent.request, FetchRequest) and sent.request.session_epoch <= 0
            return ForwardedFetch(response, opens_session=opens)
        return response if is_changed or body is None else Encoded([body], None)

    def _read_versions(self, ctx: ForwardedContext, sent: InFlight, response: Message) -> bool:
        """Leave only the versions that the proxy can read (KIP-511)."""
        assert isinstance(response, ApiVersionsResponse)
        request = sent.request
        if isinstance(request, ApiVersionsRequest) and not response.error_code and sent.version >= 3:
            ctx.session.set_client_software(request.client_software_name, request.client_software_version)
        served = self._broker.served
        kept = []
        for api in response.api_keys:
            first, last = served.get(api.api_key, (0, -1))
            api.min_version, api.max_version = max(first, api.min_version), min(last, api.max_version)
            if api.min_version <= api.max_version:
                kept.append(api)
        response.api_keys = kept
        return True

    def _read_metadata(self, _: ForwardedContext, __: InFlight, response: Message) -> bool:
        """Learn the names of topic ids, for fault rules and the journal."""
        assert isinstance(response, MetadataResponse)
        for topic in response.topics:
            if topic.name and topic.topic_id != ZERO_UUID:
                self._proxy.learn(topic.topic_id, topic.name)
        return False

    def _read_fetch(self, _: ForwardedContext, sent: InFlight, response: Message) -> bool:
        assert isinstance(response, FetchResponse)
        if isinstance(sent.request, FetchRequest):
            self._sessions.answered(sent.request, response)
        return False
