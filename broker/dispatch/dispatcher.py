"""The path of a request: header -> route -> decode -> handler -> quota and throttle time -> encode -> send.

A handler is a function `handle(ctx, request, broker)`. It returns the response, `NO_RESPONSE`, or `PARKED` after
passing a delayed operation to a purgatory; the operation's completion calls `Dispatcher.complete`. The throttler
returns a `Verdict` about the response, which is carried out here.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from struct import Struct
from typing import TYPE_CHECKING

from sluice.broker.requests.action_queue import ActionQueue
from sluice.broker.requests.channel import Channel
from sluice.broker.requests.context import (
    FIXED_HEADER,
    NO_RESPONSE,
    PARKED,
    Outcome,
    RequestContext,
    header_of,
)
from sluice.broker.requests.long_request import LongRequests, RequestTimer
from sluice.broker.requests.session import Session
from sluice.broker.throttling.throttler import Throttler
from sluice.broker.throttling.verdict import HeldRead, Verdict
from sluice.clock import Clock
from sluice.errors import RemoteProtocolError
from sluice.metrics import REQUEST_SECONDS_BOUNDS
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.header import RequestHeader
from sluice.protocol.codec.compile import decode_in_slices, decode_prefix, decode_single
from sluice.protocol.frame import SCRATCH_BYTES
from sluice.protocol.message import Message, free_arrays
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.quotas.manager import ClientQuotaManager

from .registry import HANDLERS
from .response_cache import MOST_REQUEST_BYTES, Key, ResponseCache
from .route import Route
from .throttled import ThrottledConnection

if TYPE_CHECKING:
    from sluice.broker.handlers.services import AllServices
    from sluice.broker.journal.journal import Journal

    from .forwarding import Forwarded
    from .services import DispatchHost

_SHORTEST = Struct(f"{FIXED_HEADER}h")  # and the length of the client id
_API_AND_VERSION = Struct(">hh")
_NO_READ = -1.0
_NOT_SERVED = (0, -1)  # version range of an unknown API
_pack_head = Struct(">ii").pack  # size, correlation id
_pack_flexible_head = Struct(">iiB").pack  # ... and the count of tagged fields, which is always 0


class Dispatcher:
    def __init__(
        self,
        broker: "DispatchHost",
        clock: Clock,
        throttler: Throttler,
        throttled: DelayedOperationPurgatory,
        actions: ActionQueue,
        long_requests: LongRequests,
        journal: "Journal | None" = None,
    ) -> None:
        self.clock = clock
        self.journal = journal
        # Called with each new route, to add fault rules to its handler.
        self.on_route_opened: Callable[[Route], None] | None = None
        self._broker = broker
        self._throttler = throttler
        self._throttled = throttled
        self._routes: dict[int, Route] = {}
        self._held_apis: Collection[int] = ()
        self._pending_forwards: list[Forwarded] = []
        self._actions = actions
        self._long_requests = long_requests
        self._read_ms = _NO_READ  # start of the current read, monotonic
        self._responded_routes: list[Route] = []  # one entry per response in the current read
        self._cache = ResponseCache(broker)

    @property
    def routes(self) -> Iterable[Route]:
        return self._routes.values()

    def route(self, api_and_version: int) -> Route | None:
        """`api_and_version` is encoded as in a request."""
        return self._routes.get(api_and_version) or self._open_route(api_and_version)

    def context(self, connection: Channel) -> RequestContext:
        return RequestContext(Session(self._broker.node_id, connection), connection, self)

    # -- the requests of one read --------------------------------------------------------------------------------------

    def begin_read(self, ctx: RequestContext) -> float:
        ctx.now_ms = self.clock.wall_ms()
        ctx.started_ms = self._read_ms = self.clock.monotonic_ms()
        return self._read_ms

    def end_read(self) -> None:
        """Count the responses of a read, then complete the operations that its requests made possible."""
        started_ms, self._read_ms = self._read_ms, _NO_READ
        if self._responded_routes:
            self._observe(self._responded_routes, started_ms)
            self._responded_routes = []
        self._actions.complete()

    # -- one request ---------------------------------------------------------------------------------------------------

    def dispatch(self, ctx: RequestContext, view: memoryview, start: int, end: int) -> None:
        header = ctx.header
        body = start + header.size
        if body <= end:
            api_and_version, ctx.correlation_id, id_as_sent = header.unpack_from(view, start)
        if body > end or id_as_sent != ctx.id_as_sent:
            api_and_version, ctx.correlation_id = _read_header(ctx, view, start, end)
            body = start + ctx.header.size
        ctx.request_bytes = end - start
        route = self._routes.get(api_and_version) or self._open_route(api_and_version)
        if route is None:
            ctx.api = ""
            self._respond_unsupported(ctx, *_API_AND_VERSION.unpack_from(view, start))
            return
        ctx.route = route
        ctx.api = route.label
        if route.flexible:
            # Usually there are no tagged fields: a zero.
            if body < end and view[body] == 0:
                body += 1
            else:
                body = decode_prefix(RequestHeader, 2)(view, start, end)[1]
        ctx.version = route.version
        ctx.error_code = 0
        if end - start > route.inline_bytes:
            if route.is_cached:
                self._dispatch_cached(ctx, route, view, body, end)
            else:
                self._dispatch_large(ctx, route, view, body, end, None)
            return
        decode, handle = route.decode, route.handle  # a call through a slot is slower
        request, _ = decode(view, body, end)
        if self.journal is not None:
            ctx.subject = route.about(request)
        outcome = handle(ctx, request, self._broker)
        if outcome is PARKED:
            self._parked(ctx)
        else:
            self._finish(ctx, route, outcome)

    def _dispatch_cached(self, ctx: RequestContext, route: Route, view: memoryview, body: int, end: int) -> None:
        """Send the response to an earlier, equal request, if it is cached."""
        key = None
        if end - body <= MOST_REQUEST_BYTES and self._may_cache(route):
            key = self._cache.key_of(ctx, route, bytes(view[body:end]))
            cached = self._cache.find(key)
            if cached is not None:
                parts, size, ctx.subject = cached
                self.send(ctx, parts, size)
                return
        self._dispatch_large(ctx, route, view, body, end, key)

    def _may_cache(self, route: Route) -> bool:
        # Fault rules replace `handle`, and a quota for request time charges each request.
        return route.handle is route.serve and self._throttler.quotas.request is None

    def _dispatch_large(
        self, ctx: RequestContext, route: Route, view: memoryview, body: int, end: int, key: Key | None
    ) -> None:
        """Handle a request in slices, unless it has the usual single element; cache its response under `key`."""
        request_class = API_KEYS[route.api_key].request
        decode = decode_single(request_class, route.version)
        request = None if decode is None else decode(view, body, end)
        if request is not None:
            self._serve(ctx, route, request, key)
            return
        if end - body <= SCRATCH_BYTES:  # the buffer may be overwritten between slices; a larger frame has its own
            view, body, end = memoryview(bytes(view[body:end])), 0, end - body

        def serve() -> None:
            long = ctx.long
            assert long is not None
            request, _ = decode_in_slices(request_class, route.version, view, body, end, long.pause)
            self._serve(ctx, route, request, key)

        self._long_requests.run(ctx, serve, self._timer)

    def _serve(self, ctx: RequestContext, route: Route, request: Message, key: Key | None) -> None:
        long = ctx.long
        generation = self._broker.cluster.metadata_generation
        if key is not None and not self._may_cache(route):  # changed since the request was suspended
            key = None
        if self.journal is not None:
            ctx.subject = (
                route.about(request)
                if long is None
                else self.journal.subject_of_long(route.api_key, request, long.sliced)
            )
        outcome = route.handle(ctx, request, self._broker)
        if long is not None and ctx.connection.closed:
            return
        if outcome is PARKED:
            self._parked(ctx)
            return
        if key is None or ctx.error_code or not self._cache.is_open:
            self._finish(ctx, route, outcome)
        else:
            parts = ctx.encode(outcome)
            size = sum(map(len, parts))
            self._cache.add(key, generation, (parts, size, ctx.subject))
            self.send(ctx, parts, size)
        if long is not None and long.suspended and not ctx.connection.waiting:
            free_arrays(request, long.pause)
            if isinstance(outcome, Message):
                free_arrays(outcome, long.pause)

    def _parked(self, ctx: RequestContext) -> None:
        if self._throttler.quotas.request is not None:
            self._throttler.request_timer.pause(ctx)
        if self.journal is not None and ctx.subject is not None:
            self.journal.parked(ctx)

    @property
    def _timer(self) -> RequestTimer | None:
        return None if self._throttler.quotas.request is None else self._throttler.request_timer

    def complete(self, ctx: RequestContext, answer: Callable[[], Message | Outcome]) -> None:
        connection = ctx.connection
        if connection.closed and not (ctx.survives_disconnect and connection.ended_by_client):
            return
        ctx.now_ms = self.clock.wall_ms()
        timer = self._timer
        if timer is not None:
            timer.resume()
        connection.waiting = False
        try:
            if ctx.long is None or ctx.long.is_running:
                self._finish_parked(ctx, answer())
            else:  # the long request was parked by its handler
                self._long_requests.run(ctx, lambda: self._finish_parked(ctx, answer()), timer)
        except Exception:
            connection.fail()
            return
        if not connection.waiting and ctx.long is None:
            connection.resume()
        if self._read_ms == _NO_READ:  # else `end_read` does it
            self._actions.complete()

    def _finish_parked(self, ctx: RequestContext, outcome: Message | Outcome) -> None:
        if ctx.connection.closed:
            return
        if ctx.fault is not None and not (outcome is PARKED or isinstance(outcome, HeldRead)):
            outcome = ctx.fault.after(outcome)  # which may call the handler again
        if isinstance(outcome, HeldRead):
            self._hold_read(ctx, outcome)
        elif outcome is not PARKED:
            route: Route = ctx.route  # type: ignore[assignment]  # as in `send`
            self._finish(ctx, route, outcome)

    # -- charge a response, and send it when the quotas allow ----------------------------------------------------------

    def _finish(self, ctx: RequestContext, route: Route, response: Message | Outcome) -> None:
        charge = route.charge  # a call through a slot is slower
        verdict = charge(ctx, response)
        if verdict is None:
            self.answer(ctx, response)
        elif isinstance(verdict, Verdict):
            self._carry_out(ctx, verdict)
        else:
            self._hold_read(ctx, verdict)
            self._parked(ctx)

    def _carry_out(self, ctx: RequestContext, verdict: Verdict) -> None:
        by, body = verdict.by, verdict.body
        if body is not None:
            self.send(ctx, body, verdict.size)
        elif verdict.holds and by is not None:
            self._mute(ctx, by, verdict.throttle_ms, lambda: self._release(ctx, verdict))
            return
        else:
            self.answer(ctx, verdict.response)
        if verdict.charges_encoding:
            self._throttler.charge_encoding(ctx)
        if by is not None:
            self._mute(ctx, by, verdict.throttle_ms, ctx.connection.resume)

    def _mute(self, ctx: RequestContext, by: ClientQuotaManager, throttle_ms: int, resume: Callable[[], None]) -> None:
        """Mute the connection, and call `resume` after the throttle time."""
        operation = ThrottledConnection(by, throttle_ms, resume)
        ctx.connection.mute(operation.force_complete)
        self._throttled.delay(operation)

    def _release(self, ctx: RequestContext, verdict: Verdict) -> None:
        """Send a response whose throttle time is over (KIP-13), or charge it again."""
        connection = ctx.connection
        connection.waiting = False
        if verdict.then is None:
            self.answer(ctx, verdict.response)
        elif not connection.closed:
            self._carry_out(ctx, verdict.then(ctx))
        if not connection.waiting:
            connection.resume()

    def _hold_read(self, ctx: RequestContext, outcome: HeldRead) -> None:
        self._mute(ctx, outcome.by, outcome.throttle_ms, lambda: self.complete(ctx, outcome.read))

    def answer(self, ctx: RequestContext, outcome: Message | Outcome) -> None:
        body: list[bytes | memoryview] = []
        if ctx.long is not None:
            self._answer_long(ctx, outcome)
            return
        if outcome is not NO_RESPONSE:
            encode = ctx.route.encode
            encode(outcome, body)
        self.send(ctx, body, len(body[0]) if len(body) == 1 else sum(map(len, body)))

    def _answer_long(self, ctx: RequestContext, outcome: Message | Outcome) -> None:
        long = ctx.long
        assert long is not None  # checked by the caller
        if not long.is_running:  # its throttle time is over
            self._long_requests.run(ctx, lambda: self._answer_long(ctx, outcome), self._timer)
            return
        body = [] if outcome is NO_RESPONSE else ctx.encode(outcome)
        self.send(ctx, body, sum(map(len, body)))

    def send(self, ctx: RequestContext, body: list[bytes | memoryview], size: int) -> None:
        route: Route = ctx.route  # type: ignore[assignment]  # the dispatcher sets it
        fault = ctx.fault
        if fault is not None:
            ctx.fault = None
            body = fault.answering(body) if body else body
            size = sum(map(len, body))
        if body:
            size += 4  # the correlation id
            if route.flexible_response:
                size += 1
                head = _pack_flexible_head(size, ctx.correlation_id, 0)
            else:
                head = _pack_head(size, ctx.correlation_id)
            if (journal := self.journal) is not None:
                journal.answered(ctx, body, size)
            if fault is None:
                ctx.connection.send(head, body, 4 + size)
            else:
                fault.send(head, body)
        elif self.journal is not None:
            self.journal.answered(ctx, body, 0)
        if ctx.error_code:
            route.errors[ctx.error_code] = route.errors.get(ctx.error_code, 0) + 1
        if ctx.started_ms == self._read_ms:
            self._responded_routes.append(route)  # sent with the read's other responses
        else:
            self._observe([route], ctx.started_ms)

    def hold_forwarded(self, api_keys: Collection[int]) -> None:
        """Park requests of these APIs until they time out; handle other parked ones."""
        if api_keys == self._held_apis:
            return
        self._held_apis = api_keys
        for api_and_version, route in self._routes.items():
            self._update_hold(route, api_and_version >> 16)
        pending, self._pending_forwards = self._pending_forwards, []
        for forwarded in pending:
            forwarded.forward()

    def _update_hold(self, route: Route, api_key: int) -> None:
        before = route.serve
        route.serve = self._park_forwarded if api_key in self._held_apis else HANDLERS[api_key].load()
        if route.handle is before:  # no fault rules replace it
            route.handle = route.serve

    def _park_forwarded(self, ctx: RequestContext, request: Message, broker: "AllServices") -> Outcome:
        from .forwarding import Forwarded  # few brokers are ever isolated

        forwarded = Forwarded(ctx, request, broker)
        self._pending_forwards.append(forwarded)
        ctx.connection.park(forwarded.force_complete)
        self._broker.scheduler.delay(forwarded)
        return PARKED

    def _observe(self, routes: list[Route], started_ms: float) -> None:
        seconds = (self.clock.monotonic_ms() - started_ms) / 1e3
        bucket = bisect_left(REQUEST_SECONDS_BOUNDS, seconds)
        if len(routes) == 1:
            (route,) = routes
            route.requests += 1
            route.latency_counts[bucket] += 1
            route.latency_sum_s += seconds
            return
        while routes:
            route = routes[0]
            count = routes.count(route)
            route.requests += count
            route.latency_counts[bucket] += count
            route.latency_sum_s += count * seconds
            # The requests of a read are usually of one API.
            routes = [other for other in routes if other is not route] if count < len(routes) else []

    def _open_route(self, api_and_version: int) -> Route | None:
        api_key, version = _API_AND_VERSION.unpack(api_and_version.to_bytes(4, "big"))
        first, last = self._broker.served.get(api_key, _NOT_SERVED)
        if not first <= version <= last:
            return None
        handler = HANDLERS[api_key]
        route = Route(handler, version, self._throttler.charge_of(handler.api))
        if self.journal is not None:
            route.about = self.journal.reader_of(api_key)
        if api_key in self._held_apis:
            self._update_hold(route, api_key)
        if self.on_route_opened is not None:
            self.on_route_opened(route)
        self._routes[api_and_version] = route
        return route

    def _respond_unsupported(self, ctx: RequestContext, api_key: int, version: int) -> None:
        # Only ApiVersions has a response for every client: version 0, with the supported versions.
        served = self._broker.served.get(api_key)
        if api_key == ApiKey.API_VERSIONS and served:
            from sluice.broker.handlers.cluster.api_versions import (
                unsupported_version,  # deferred: handlers are imported with their first request
            )

            route = self._routes.get(ApiKey.API_VERSIONS << 16) or self._open_route(ApiKey.API_VERSIONS << 16)
            assert route is not None  # version 0 of ApiVersions is always served
            ctx.route, ctx.api, ctx.version = route, f"ApiVersions v{version}", version
            if self.journal is not None:
                ctx.subject = self.journal.empty_subject
            self.answer(ctx, unsupported_version(ctx, self._broker))
            return
        api = API_KEYS.get(api_key)
        name = f"{api.name} version {version}" if api else f"API key {api_key}, version {version}"
        expected = f"; expected {served[0]} to {served[1]}" if served else ""
        raise RemoteProtocolError(f"{name}: unsupported version{expected}")


def _read_header(ctx: RequestContext, view: memoryview, start: int, end: int) -> tuple[int, int]:
    ctx.api = ""
    if end - start < _SHORTEST.size:
        raise RemoteProtocolError(
            f"malformed request header; expected at least {_SHORTEST.size} bytes, got {end - start}"
        )
    api_and_version, correlation_id, id_bytes = _SHORTEST.unpack_from(view, start)
    if id_bytes > end - start - _SHORTEST.size:
        raise RemoteProtocolError(
            f"malformed request header: client id length {id_bytes} exceeds the request size {end - start}"
        )
    header = header_of(max(id_bytes, 0))
    client_id = bytes(view[start + _SHORTEST.size : start + header.size])
    try:
        ctx.session.client_id = client_id.decode()
    except UnicodeDecodeError:
        raise RemoteProtocolError(f"malformed request header: client id {client_id!r} is not UTF-8") from None
    ctx.session.identity = None
    ctx.header = header
    ctx.id_as_sent = header.unpack_from(view, start)[2]
    return api_and_version, correlation_id
