"""The exchange of a proxy: the handler of every API forwards the request to the upstream broker.

All else is the exchange of a broker: fault rules act before and after the handler, quotas charge the response, the
journal records it. A response is decoded, but sent on as it was received unless a fault rule, a quota, or the proxy has
changed it: addresses, and the versions in ApiVersions.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from struct import Struct
from typing import cast

from sluice.broker.broker import Broker, brokers_of
from sluice.broker.exchange.exchange import Exchange
from sluice.broker.exchange.response_cache import Encoded
from sluice.broker.exchange.route import Route
from sluice.broker.exchange.routes import Routes
from sluice.broker.requests.channel import Channel
from sluice.broker.requests.context import ENDED, Outcome, RequestContext
from sluice.broker.requests.long_request import LongRequest
from sluice.broker.requests.session import Session
from sluice.broker.requests.trace import RequestTrace
from sluice.broker.throttling.scope import EVERYTHING, Scope
from sluice.client.network.connection import Cancelable
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sluice.protocol.apis.fetch import FetchRequest, FetchResponse
from sluice.protocol.apis.header import ResponseHeader
from sluice.protocol.apis.metadata import MetadataResponse
from sluice.protocol.apis.share_fetch import ShareFetchResponse
from sluice.protocol.codec.compile import decode_in_slices, decode_prefix
from sluice.protocol.entities import reader_of
from sluice.protocol.error_codes import codes_in
from sluice.protocol.errors import ErrorCode
from sluice.protocol.frame import SIZE_BYTES
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID

from .fetch_sessions import ForwardedSessions
from .forwarded_fetch import ForwardedFetch, fail_partitions
from .handlers import SASL_APIS, handlers_of
from .known_topic import KnownTopic, UnknownIds
from .mutations import MUTATING
from .repeated_responses import RepeatedResponses
from .sasl_passthrough import SaslPassthrough
from .throttling import ForwardedThrottler
from .upstream.cluster import UpstreamTopic
from .upstream.connection import FETCHES, ForwardedContext, InFlight, UpstreamConnection
from .upstream.connector import UpstreamConnector
from .upstream.forwarded_route import DecodedRoute, ForwardedRoute
from .upstream.relay import Pipes
from .upstream.traffic import UpstreamTraffic
from .upstream.use import CHECKED, UpstreamUse

log = logging.getLogger("sluice.proxy")

_API_AND_VERSION = Struct(">I")
_CORRELATION_ID_BYTES = 4  # all of a response header without tagged fields
_MOST_CODES = 300  # Kafka's, and those of later releases; each is a label of metrics
# Names of topic ids, of which the oldest is forgotten. No cluster has more topics.
_MOST_TOPICS = 100_000
_MOST_WITHOUT_NAME = 1000  # then they are asked for again


class ForwardingExchange(Exchange):
    def __init__(
        self, broker: Broker, connector: UpstreamConnector, use: UpstreamUse | None, scope: Scope = EVERYTHING
    ) -> None:
        self._scope = scope
        self._is_limited, self._limits_topics = bool(scope), bool(scope.topics)
        assert isinstance(broker.throttler, ForwardedThrottler)
        broker.throttler.scope = scope
        self.passes_sasl = connector.passes_sasl
        handlers = handlers_of(broker.served, use, passes_sasl=self.passes_sasl)
        super().__init__(broker, Routes(broker, handlers, ForwardedRoute if use is None else DecodedRoute))
        self._connector = connector
        self.long_requests = broker.cluster.runtime.long_requests
        self._sasl = SaslPassthrough(self.routes, broker.config.text("sasl.oauthbearer.sub.claim.name"))
        self.reading: UpstreamConnection | None = None  # of the client whose requests are handled
        self.begin_read, self.end_read = self._begin_read, self._end_read
        self._use = use
        self._checked = frozenset() if use is None else CHECKED
        self.traffic = UpstreamTraffic()
        self._max_response_bytes = broker.config.integer("socket.request.max.bytes")
        self._codes: set[int] = {*ErrorCode}
        self._without_name: set[bytes] = set()  # topic ids that the cluster was asked for
        self._repeated = RepeatedResponses()
        self._sessions = ForwardedSessions(broker.metadata)
        broker.fetch_sessions = self._sessions  # type: ignore[assignment]  # only fault rules read it
        self._readers: dict[int, Callable[[ForwardedContext, InFlight, Message], bool]] = {
            ApiKey.API_VERSIONS: self._read_versions,
            ApiKey.METADATA: self._read_metadata,
            ApiKey.FETCH: self._read_fetch,
            ApiKey.SASL_HANDSHAKE: self._sasl.read_handshake,
            ApiKey.SASL_AUTHENTICATE: self._sasl.read_authenticate,
        }

    @property
    def pipes(self) -> Pipes | None:
        pipes = self._connector.pipes
        return pipes if pipes.are_usable and not self._throttler.quotas.fetch.quotas_enabled else None

    def serve(self, versions: Mapping[int, tuple[int, int]]) -> None:
        """Serve these API versions from now on; the upstream itself refuses others that were served before."""
        broker = self._broker
        broker.advertised = broker.served = versions
        vars(broker).pop("api_keys", None)
        self._repeated.clear()
        self.routes.handlers = handlers_of(versions, self._use, passes_sasl=self.passes_sasl)

    def context(self, connection: Channel) -> RequestContext:
        trace = None if self.journal is None else RequestTrace()
        ctx = self._context(Session(self._broker.node_id, connection, trace))
        ctx.upstream = UpstreamConnection(self, ctx, self._connector.pool, self._max_response_bytes)
        return ctx

    def _context(self, session: Session) -> ForwardedContext:
        ctx = ForwardedContext(session, self._waits.resume)
        ctx.sasl = ctx.mutations = None
        ctx.is_exempt = ctx.names_unknown_broker = False
        return ctx

    def disconnected(self, ctx: RequestContext, error: Exception | None) -> None:
        """End the upstream connection; requests in flight together are recorded as unanswered."""
        upstream = cast("ForwardedContext", ctx).upstream
        for sent in upstream.in_flight:
            if self.journal is not None and not sent.is_alone:
                upstream.restore(sent)
                self.journal.unanswered(ctx)
        upstream.client_lost(error)
        super().disconnected(ctx, error)

    def dispatch(self, ctx: RequestContext, view: memoryview, start: int, end: int) -> None:
        upstream: UpstreamConnection = ctx.upstream  # type: ignore[attr-defined]  # cheaper than a cast
        if upstream.passes_tokens and self._sasl.is_token(cast("ForwardedContext", ctx), view, start, end):
            upstream.forward_token(bytes(view[start:end]))
            return
        is_alone = bool(upstream.in_flight) and self._is_alone(view, start, end)
        if is_alone or upstream.is_full:
            upstream.hold(bytes(view[start:end]), is_alone=is_alone)
        else:
            super().dispatch(ctx, view, start, end)

    def handle(self, ctx: RequestContext, route: Route, request: Message) -> Message | Outcome:
        """Handle a request when the names of its topic ids are known, if a rule or a quota depends on them."""
        if route.has_faults or self._limits_topics:
            unknown = self._unknown_ids(route.api_key, request)
            if unknown:
                frame = cast(ForwardedRoute, route).frame_of(ctx, request)
                self._learn_first(cast("ForwardedContext", ctx), frame, unknown)
                return ENDED
        if self._is_limited:
            topics = {topic for topic, _ in self._partitions_of(route.api_key, request)} if self._limits_topics else ()
            cast("ForwardedContext", ctx).is_exempt = not self._scope.includes(ctx.session.client_id, topics)
        return super().handle(ctx, route, request)

    def _partitions_of(self, api_key: int, request: Message) -> Iterable[tuple[str, int]]:
        partitions, *_ = reader_of(api_key)(request, self._broker.metadata.topics_by_id)
        if isinstance(request, FetchRequest) and request.session_epoch > 0:
            return [*partitions, *self._sessions.partitions_of(request.session_id)]
        return partitions

    def _unknown_ids(self, api_key: int, request: Message) -> list[bytes]:
        names = UnknownIds(self._broker.metadata.topics_by_id, self._without_name)
        reader_of(api_key)(request, names)  # type: ignore[arg-type]  # has the method that it uses
        return [*names.unknown]

    def _learn_first(self, ctx: ForwardedContext, frame: bytes, topic_ids: list[bytes]) -> None:
        """Ask the cluster for the names of topics, then handle the request; until then, its connection is parked."""
        connection = ctx.session.connection

        def dispatch(_: Mapping[str, int]) -> None:
            if len(self._without_name) > _MOST_WITHOUT_NAME:
                self._without_name.clear()
            self._without_name.update(topic_ids)
            if not connection.closed:
                self.dispatch_held(ctx, frame[SIZE_BYTES:])

        connection.park(ctx.upstream.close)
        self.look_up([], topic_ids, dispatch)

    def _begin_read(self, ctx: RequestContext) -> float:
        self.reading = ctx.upstream  # type: ignore[attr-defined]  # cheaper than a cast
        return self._read.begin(ctx)

    def _end_read(self) -> None:
        reading, self.reading = self.reading, None
        if reading is not None:
            reading.send_unsent()
        self._read.end()

    def is_alone(self, route: Route) -> bool:
        """Return whether a fault rule or a quota may act on the requests of a route."""
        if route.has_faults or route.api_key in self._checked:
            return True
        if route.api_key in MUTATING:  # also in shadow mode: the cluster is asked first
            return self._throttler.controller.mutation is not None
        quotas = self._throttler.quotas
        if self._throttler.is_shadow:
            return False
        if route.api_key == ApiKey.PRODUCE:
            return quotas.produce.quotas_enabled
        return route.api_key in FETCHES and quotas.fetch.quotas_enabled

    def look_up(self, names: list[str], ids: list[bytes], respond: Callable[[Mapping[str, int]], None]) -> None:
        def found(topics: list[UpstreamTopic]) -> None:
            self._learn((topic.topic_id, topic.name) for topic in topics)
            respond({topic.name: topic.partitions for topic in topics})

        self._connector.look_up(names, ids, found)

    def _is_alone(self, view: memoryview, start: int, end: int) -> bool:
        if end - start < _API_AND_VERSION.size:
            return True
        route = self.routes.find(*_API_AND_VERSION.unpack_from(view, start))
        # A response of the proxy itself must not overtake the upstream's.
        return route is None or (route.api_key in SASL_APIS and not self.passes_sasl) or self.is_alone(route)

    # -- called by upstream connections --------------------------------------------------------------------------------

    def dispatch_held(self, ctx: ForwardedContext, frame: bytes) -> None:
        """Handle a request that had to wait for the responses to earlier ones."""
        connection = ctx.session.connection
        connection.unpark()
        self.begin_read(ctx)
        try:
            self.dispatch(ctx, memoryview(frame), 0, len(frame))
        except RemoteProtocolError as error:
            connection.close(str(error))
        except Exception:
            connection.fail()
        self.end_read()
        if not connection.waiting and not connection.closed:
            connection.resume()

    def received(self, ctx: ForwardedContext, sent: InFlight, view: memoryview, start: int, end: int) -> None:
        """Respond to a request with the upstream's response. Raises RemoteProtocolError if it is malformed."""
        route, position = sent.route, self._start_of_body(sent, view, start, end)
        if sent.is_alone:
            response, _ = route.decode_response(view, position, end)
            ctx.resume(partial(self._read_response, ctx, sent, response, None))
            return
        ctx.now_ms = self.clock.wall_ms()
        outcome = self._repeated_or_read(ctx, sent, view[position:end])
        if sent.is_relayed:  # a quota that was set meanwhile charges the next response
            self._send(ctx, [view[position:end]])
        else:
            self._charge_and_respond(ctx, outcome)

    def _start_of_body(self, sent: InFlight, view: memoryview, start: int, end: int) -> int:
        """Return where the body of a response starts, and record the time until the response."""
        position = start + sent.route.header_bytes
        if position > start + _CORRELATION_ID_BYTES and (position > end or view[position - 1]):
            _, position = decode_prefix(ResponseHeader, 1)(view, start, end)
        self.traffic.answered(sent.route.api_name, self.clock.monotonic_ms() - sent.sent_ms)
        return position

    def read_long(
        self, ctx: ForwardedContext, sent: InFlight, view: memoryview, start: int, end: int
    ) -> tuple[LongRequest, Callable[[], None]]:
        """Return the work of reading a long response, for slices, and the function that then responds.

        It has its own context, because the client's requests are forwarded meanwhile.
        """
        body = view[self._start_of_body(sent, view, start, end) : end]
        reading = self._context(ctx.session)
        reading.route, reading.upstream = sent.route, ctx.upstream
        outcome: Message | Outcome = ENDED

        def read() -> None:
            nonlocal outcome
            outcome = self._repeated_or_read(reading, sent, body)

        def respond() -> None:
            ctx.now_ms, ctx.error_code = self.clock.wall_ms(), reading.error_code
            self._charge_and_respond(ctx, outcome)

        reading.long = LongRequest(self.long_requests, len(body), read)
        return reading.long, respond

    def received_token(self, ctx: ForwardedContext, token: bytes) -> None:
        """Send the upstream's response to a SASL token without a header."""
        connection = ctx.session.connection
        if connection.closed:
            return
        self._sasl.read_token(ctx, token)
        connection.unpark()
        self.send_token(ctx, token)
        connection.resume()

    def connect(self, connection: UpstreamConnection) -> Cancelable:
        return self._connector.connect(self._broker.node_id, connection)

    def connected(self) -> None:
        self.traffic.connections += 1
        self._connector.reached(self._broker.node_id)

    def failed_to_connect(self, reason: str) -> None:
        self.traffic.failures += 1
        self._connector.failed(self._broker.node_id, reason)

    def rejects(self, problem: str) -> None:
        self.traffic.invalid_responses += 1
        log.warning(
            "invalid response of the upstream broker", extra={"broker": self._broker.node_id, "reason": problem}
        )

    # -- responses -----------------------------------------------------------------------------------------------------

    def _repeated_or_read(self, ctx: ForwardedContext, sent: InFlight, body: memoryview) -> Message | Outcome:
        """Return the response to send for a received one that no rule or quota changes."""
        route, repeated = sent.route, self._repeated
        key = repeated.key_of(route, ctx.session.connection.advertised, body) if self._use is None else None
        found = None if key is None else repeated.find(key)
        if found is not None:
            if route.api_key == ApiKey.API_VERSIONS:
                self._read_software(ctx, sent)
            return found
        long = ctx.long
        if long is None:
            response, _ = route.decode_response(body, 0, len(body))
        else:
            cls = API_KEYS[route.api_key].response
            response, _ = decode_in_slices(cls, route.version, body, 0, len(body), long.slices)
        ctx.names_unknown_broker = False
        outcome = self._read_response(ctx, sent, response, body)
        if ctx.error_code or ctx.names_unknown_broker:
            key = None
        if key is None and long is None:
            return outcome
        parts = ctx.encode(outcome)
        if key is None:
            return Encoded(parts, None)
        encoded = Encoded([b"".join(parts)], None)
        repeated.keep(key, encoded)
        return encoded

    def _read_response(
        self, ctx: ForwardedContext, sent: InFlight, response: Message, body: memoryview | None
    ) -> Message | Outcome:
        """Return the response to send: `body`, if it is given and nothing was changed."""
        codes = codes_in(response)
        code = 0
        if codes:
            code = self._counted(codes[0])
            self.traffic.errors[sent.route.api_name, code] += 1
        ctx.error_code = code
        if self._use is not None:
            self._use.answered(sent.request, response)
        read = self._readers.get(sent.route.api_key)
        is_changed = read is not None and read(ctx, sent, response)
        rewrite = sent.route.rewrite_addresses
        if rewrite is not None and rewrite(response, partial(self._address_of, ctx)):
            is_changed = True
        kept = None if is_changed or body is None else Encoded([body], None)
        if (sent.is_alone or self._throttler.quotas.fetch.quotas_enabled) and isinstance(
            response, FetchResponse | ShareFetchResponse
        ):
            opens = isinstance(sent.request, FetchRequest) and sent.request.session_epoch <= 0
            return ForwardedFetch(response, kept, opens_session=opens)
        if sent.route.api_key in MUTATING and ctx.mutations is not None:
            response = ctx.mutations.finish(response, self._broker.metadata.topics_by_id)
            kept = None
        return response if kept is None else kept

    def _counted(self, code: int) -> int:
        """Return the code, or UNKNOWN_SERVER_ERROR if the upstream has sent too many unknown ones."""
        known = self._codes
        if code not in known:
            if len(known) >= _MOST_CODES:
                return ErrorCode.UNKNOWN_SERVER_ERROR
            known.add(code)
        return code

    def _address_of(self, ctx: ForwardedContext, node_id: int, _: str, __: int) -> tuple[str, int] | None:
        """Return the address of a broker for a client; None if the proxy does not know the broker yet."""
        session, broker = ctx.session, brokers_of(self._broker.cluster).get(node_id)
        if broker is None or session.connection.advertised.name not in broker.endpoints:
            ctx.names_unknown_broker = True
            return None
        endpoint = session.endpoint_of(broker)
        return endpoint.host, endpoint.port

    def _read_versions(self, ctx: ForwardedContext, sent: InFlight, response: Message) -> bool:
        """Leave only the versions that the proxy can read (KIP-511)."""
        assert isinstance(response, ApiVersionsResponse)
        if not response.error_code:
            self._read_software(ctx, sent)
        served = self._broker.served
        kept = []
        for api in response.api_keys:
            first, last = served.get(api.api_key, (0, -1))
            api.min_version, api.max_version = max(first, api.min_version), min(last, api.max_version)
            if api.min_version <= api.max_version:
                kept.append(api)
        response.api_keys = kept
        return True

    def _read_software(self, ctx: ForwardedContext, sent: InFlight) -> None:
        request = sent.request
        if isinstance(request, ApiVersionsRequest):
            ctx.session.set_client_software(request.client_software_name, request.client_software_version)

    def _read_metadata(self, _: ForwardedContext, __: InFlight, response: Message) -> bool:
        """Learn the names of topic ids, for fault rules and the journal."""
        assert isinstance(response, MetadataResponse)
        self._learn((topic.topic_id, topic.name) for topic in response.topics if topic.name)
        return False

    def _learn(self, topics: Iterable[tuple[bytes, str]]) -> None:
        known = self._broker.metadata.topics_by_id
        for topic_id, name in topics:
            if topic_id != ZERO_UUID and topic_id not in known:
                known[topic_id] = KnownTopic(name)  # type: ignore[assignment]  # only its name is read
                if len(known) > _MOST_TOPICS:
                    del known[next(iter(known))]

    def _read_fetch(self, ctx: ForwardedContext, sent: InFlight, response: Message) -> bool:
        assert isinstance(response, FetchResponse)
        request = sent.request
        if not isinstance(request, FetchRequest):
            return False
        self._sessions.answered(request, response)
        if ctx.fault is None or ctx.fault.fetch_error is None or response.error_code:
            return False
        fetched = self._sessions.fetched(request, response)
        failed = fail_partitions(response, fetched, ctx.fault.fetch_error, self._broker.metadata.topics_by_id)
        ctx.error_code = ctx.error_code or failed or 0
        return failed is not None
