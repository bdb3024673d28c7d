"""The exchange: the life of a request, from its frame to its response.

    header -> route -> decode -> handler -> quota and throttle time -> encode -> send

What it calls returns values; only the exchange sends. A handler is a function `handle(ctx, request, broker)`. It
returns the response, `NO_RESPONSE`, or a `Wait`, which is begun here; when it is over, `resume` gets the response. The
throttler returns a `Verdict` about the response, which is carried out here. Fault rules act before and after the
handler, and on the frames that are sent.
"""

from collections.abc import Callable
from functools import partial
from struct import Struct

from sluice.broker.broker import Broker
from sluice.broker.handlers.cluster.api_versions import unsupported_version
from sluice.broker.requests.channel import Channel
from sluice.broker.requests.context import NO_RESPONSE, Outcome, RequestContext, Wait
from sluice.broker.requests.session import Session
from sluice.broker.throttling.verdict import HeldRead, Verdict
from sluice.protocol.apis.header import RequestHeader
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.message import Message, free_arrays
from sluice.quotas.manager import ClientQuotaManager

from .large_requests import LargeRequests, decode_usual
from .request_header import read_header
from .response_cache import MOST_REQUEST_BYTES, Key, ResponseCache
from .route import Route, count_responses
from .routes import Routes
from .throttled import ThrottledConnection

_NO_READ = -1.0
_pack_head = Struct(">ii").pack  # size, correlation id
_pack_flexible_head = Struct(">iiB").pack  # ... and the count of tagged fields, which is always 0


class Exchange:
    def __init__(self, broker: Broker) -> None:
        self.clock = broker.clock
        self.journal = broker.journal
        self.routes = routes = Routes(broker)
        self._broker = broker
        self._throttler = broker.throttler
        self._throttled = broker.throttled
        self._opened_routes = routes.opened  # cheaper than a call of `find` for each request
        self._actions = broker.actions
        self._large = LargeRequests(broker.cluster.runtime.long_requests, broker.throttler)
        self._read_ms = _NO_READ  # start of the current read, monotonic
        self._responded_routes: list[Route] = []  # one entry per response in the current read
        self._cache = ResponseCache(broker)
        broker.hold_forwarded = routes.hold_forwarded

    def route(self, api_and_version: int) -> Route | None:
        """Return None if the version is not served; `api_and_version` is encoded as in a request."""
        return self.routes.find(api_and_version)

    def context(self, connection: Channel) -> RequestContext:
        return RequestContext(Session(self._broker.node_id, connection), connection, self.resume)

    # -- the requests of one read --------------------------------------------------------------------------------------

    def begin_read(self, ctx: RequestContext) -> float:
        ctx.now_ms = self.clock.wall_ms()
        ctx.started_ms = self._read_ms = self.clock.monotonic_ms()
        return self._read_ms

    def end_read(self) -> None:
        """Count the responses of a read, then complete the operations that its requests made possible."""
        started_ms, self._read_ms = self._read_ms, _NO_READ
        if self._responded_routes:
            count_responses(self._responded_routes, self.clock.monotonic_ms() - started_ms)
            self._responded_routes = []
        self._actions.complete()

    # -- one request ---------------------------------------------------------------------------------------------------

    def dispatch(self, ctx: RequestContext, view: memoryview, start: int, end: int) -> None:
        header = ctx.header
        body = start + header.size
        if body <= end:
            api_and_version, ctx.correlation_id, id_as_sent = header.unpack_from(view, start)
        if body > end or id_as_sent != ctx.id_as_sent:
            api_and_version, ctx.correlation_id = read_header(ctx, view, start, end)
            body = start + ctx.header.size
        ctx.request_bytes = end - start
        route = self._opened_routes.get(api_and_version) or self.routes.find(api_and_version)
        if route is None:
            self._respond_unsupported(ctx, api_and_version)
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
            self._decode_large(ctx, route, view, body, end)
            return
        decode, handle = route.decode, route.handle  # a call through a slot is slower
        request, _ = decode(view, body, end)
        if self.journal is not None:
            ctx.subject = route.about(request)
        outcome = handle(ctx, request, self._broker)
        if type(outcome) is Wait:
            self._begin(ctx, outcome)
            self._parked(ctx)
        else:
            self._charge_and_respond(ctx, route, outcome)

    def _decode_large(self, ctx: RequestContext, route: Route, view: memoryview, body: int, end: int) -> None:
        """Handle a request in slices, or send the response to an earlier, equal one, if it is cached."""
        key = None
        if route.is_cached and end - body <= MOST_REQUEST_BYTES and self._may_cache(route):
            key = self._cache.key_of(ctx, route, bytes(view[body:end]))
            cached = self._cache.find(key)
            if cached is not None:
                parts, size, ctx.subject = cached
                self.send(ctx, parts, size)
                return
        usual = decode_usual(route, view, body, end)
        if usual is None:
            handle = partial(self._handle_large, ctx, route, key)
            self._large.decode(ctx, route, view[body:end], handle)
        else:
            self._handle_large(ctx, route, key, usual)

    def _may_cache(self, route: Route) -> bool:
        # A quota for request time charges each request.
        return not route.has_faults and self._throttler.quotas.request is None

    def _handle_large(self, ctx: RequestContext, route: Route, key: Key | None, request: Message) -> None:
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
        if type(outcome) is Wait:
            self._begin(ctx, outcome)
            self._parked(ctx)
            return
        if key is None or ctx.error_code or not self._cache.is_open:
            self._charge_and_respond(ctx, route, outcome)
        else:
            parts = ctx.encode(outcome)
            size = sum(map(len, parts))
            self._cache.add(key, generation, (parts, size, ctx.subject))
            self.send(ctx, parts, size)
        if long is not None and long.suspended and not ctx.connection.waiting:
            free_arrays(request, long.pause)
            if isinstance(outcome, Message):
                free_arrays(outcome, long.pause)

    def _begin(self, ctx: RequestContext, wait: Wait) -> None:
        """Park the connection, and begin the wait, which may be over at once."""
        if wait.cancel is not None:
            ctx.connection.park(wait.cancel)
        if wait.begin is not None:
            wait.begin()

    def _parked(self, ctx: RequestContext) -> None:
        if self._throttler.quotas.request is not None:
            self._throttler.request_timer.pause(ctx)
        if self.journal is not None and ctx.subject is not None:
            self.journal.parked(ctx)

    def resume(self, ctx: RequestContext, respond: Callable[[], Message | Outcome]) -> None:
        """Continue a parked request: `respond` returns its response, or parks it again."""
        connection = ctx.connection
        if connection.closed and not (ctx.survives_disconnect and connection.ended_by_client):
            return
        ctx.now_ms = self.clock.wall_ms()
        timer = self._large.timer
        if timer is not None:
            timer.resume()
        connection.waiting = False
        try:
            if ctx.long is None or ctx.long.is_running:
                self._continue(ctx, respond())
            else:  # the long request was parked by its handler
                self._large.run(ctx, lambda: self._continue(ctx, respond()))
        except Exception:
            connection.fail()
            return
        if not connection.waiting and ctx.long is None:
            connection.resume()
        if self._read_ms == _NO_READ:  # else `end_read` does it
            self._actions.complete()

    def _continue(self, ctx: RequestContext, outcome: Message | Outcome) -> None:
        if ctx.connection.closed:
            return
        if ctx.fault is not None and not isinstance(outcome, Wait | HeldRead):
            outcome = ctx.fault.after(outcome)  # which may call the handler again
        if isinstance(outcome, HeldRead):
            self._hold_read(ctx, outcome)
        elif isinstance(outcome, Wait):
            self._begin(ctx, outcome)
        else:
            route: Route = ctx.route  # type: ignore[assignment]  # as in `send`
            self._charge_and_respond(ctx, route, outcome)

    def _respond_unsupported(self, ctx: RequestContext, api_and_version: int) -> None:
        ctx.api = ""
        ctx.route = self.routes.for_unsupported(ctx, api_and_version)
        if self.journal is not None:
            ctx.subject = self.journal.empty_subject
        self.respond(ctx, unsupported_version(ctx, self._broker))

    # -- charge a response, and send it when the quotas allow ----------------------------------------------------------

    def _charge_and_respond(self, ctx: RequestContext, route: Route, response: Message | Outcome) -> None:
        charge = route.charge  # a call through a slot is slower
        verdict = charge(ctx, response)
        if verdict is None:
            self.respond(ctx, response)
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
            self.respond(ctx, verdict.response)
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
            self.respond(ctx, verdict.response)
        elif not connection.closed:
            self._carry_out(ctx, verdict.then(ctx))
        if not connection.waiting:
            connection.resume()

    def _hold_read(self, ctx: RequestContext, outcome: HeldRead) -> None:
        self._mute(ctx, outcome.by, outcome.throttle_ms, lambda: self.resume(ctx, outcome.read))

    def respond(self, ctx: RequestContext, outcome: Message | Outcome) -> None:
        body: list[bytes | memoryview] = []
        if ctx.long is not None:
            self._respond_long(ctx, outcome)
            return
        if outcome is not NO_RESPONSE:
            encode = ctx.route.encode
            encode(outcome, body)
        self.send(ctx, body, len(body[0]) if len(body) == 1 else sum(map(len, body)))

    def _respond_long(self, ctx: RequestContext, outcome: Message | Outcome) -> None:
        long = ctx.long
        assert long is not None  # checked by the caller
        if not long.is_running:  # its throttle time is over
            self._large.run(ctx, lambda: self._respond_long(ctx, outcome))
            return
        body = [] if outcome is NO_RESPONSE else ctx.encode(outcome)
        self.send(ctx, body, sum(map(len, body)))

    def send(self, ctx: RequestContext, body: list[bytes | memoryview], size: int) -> None:
        route: Route = ctx.route  # type: ignore[assignment]  # the exchange sets it
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
                for frame in fault.leaving(b"".join((head, *body))):
                    ctx.connection.send(frame, [], len(frame))
                fault.sent()
        elif self.journal is not None:
            self.journal.answered(ctx, body, 0)
        if ctx.error_code:
            route.errors[ctx.error_code] = route.errors.get(ctx.error_code, 0) + 1
        if ctx.started_ms == self._read_ms:
            self._responded_routes.append(route)  # sent with the read's other responses
        else:
            count_responses([route], self.clock.monotonic_ms() - ctx.started_ms)
