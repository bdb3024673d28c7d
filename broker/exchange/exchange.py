"""The exchange: the life of a request, from its frame to its response.

    header -> route -> decode -> handler -> quota and throttle time -> encode -> send

What it calls returns values; only the exchange sends. A handler is a function `handle(ctx, request, broker)`. It
returns the response, `NO_RESPONSE`, or a `Wait`, which is begun here; when it is over, the request is resumed
(`wait.py`). The throttler returns a `Verdict` about the response, which is carried out here. Fault rules act before and
after the handler, and on the frames that are sent.
"""

from functools import partial
from struct import Struct

from sluice.broker.broker import Broker
from sluice.broker.handlers.cluster.api_versions import unsupported_version
from sluice.broker.requests.channel import Channel
from sluice.broker.requests.context import NO_RESPONSE, Outcome, RequestContext, Wait
from sluice.broker.requests.session import Session
from sluice.broker.requests.trace import RequestTrace
from sluice.broker.throttling.verdict import HeldRead, Verdict
from sluice.protocol.codec.wire import Parts
from sluice.protocol.message import Message

from .current_read import CurrentRead
from .large_requests import LargeRequests
from .request_header import after_tagged_fields, read_header
from .route import Route
from .routes import Routes
from .wait import Waits

_SIZE = Struct(">i")


class Exchange:
    passes_sasl = False  # whether clients authenticate with an upstream broker, whatever the listener's protocol

    def __init__(self, broker: Broker, routes: Routes | None = None) -> None:
        self.clock = broker.clock
        self.journal = broker.journal
        self.routes = Routes(broker) if routes is None else routes
        self._opened_routes = self.routes.opened
        self._broker = broker
        self._throttler = broker.throttler
        self._large = LargeRequests(broker, self.routes.cache, self.handle, self._send)
        self._read = CurrentRead(broker)
        self._waits = Waits(broker, self._large, self._read, self._charge_and_respond, self._send)
        self.begin = self._waits.begin
        self.begin_read, self.end_read = self._read.begin, self._read.end
        broker.hold_forwarded = self.routes.hold_forwarded

    def context(self, connection: Channel) -> RequestContext:
        trace = None if self.journal is None else RequestTrace()
        return RequestContext(Session(self._broker.node_id, connection, trace), self._waits.resume)

    def disconnected(self, ctx: RequestContext, _: Exception | None) -> None:
        self._broker.disconnected(ctx.session.connection)

    def dispatch(self, ctx: RequestContext, view: memoryview, start: int, end: int) -> None:
        session = ctx.session
        header = session.header
        body = start + header.size
        if body <= end:
            api_and_version, ctx.correlation_id, id_as_sent = header.unpack_from(view, start)
        if body > end or id_as_sent != session.id_as_sent:
            api_and_version, ctx.correlation_id = read_header(ctx, view, start, end)
            body = start + session.header.size
        ctx.request_bytes = size = end - start
        ctx.error_code = 0
        route = self._opened_routes.get(api_and_version) or self.routes.find(api_and_version)
        if route is None:
            ctx.route = self.routes.for_unsupported(ctx, api_and_version)
            self._send(ctx, ctx.encode(unsupported_version(ctx, self._broker)))
            return
        ctx.route = route
        ctx.version = route.version
        if route.flexible:
            body = body + 1 if body < end and not view[body] else after_tagged_fields(view, start, end)
        if size > route.inline_bytes:
            self._large.dispatch(ctx, route, view, body, end)
            return
        decode = route.decode
        request, _ = decode(view, body, end)
        self.handle(ctx, route, request)

    def handle(self, ctx: RequestContext, route: Route, request: Message) -> Message | Outcome:
        """Respond to a decoded request, or let it wait; return the handler's outcome."""
        trace = ctx.session.trace
        if trace is not None:
            trace.subject = route.about(request)
        handle = route.handle
        outcome = handle(ctx, request, self._broker)
        if type(outcome) is Wait:
            self.begin(ctx, outcome)
            self._waits.parked(ctx)
        elif ctx.long is None or not ctx.session.connection.closed:
            self._charge_and_respond(ctx, outcome)
        return outcome

    def _charge_and_respond(self, ctx: RequestContext, outcome: Message | Outcome) -> None:
        route: Route = ctx.route  # type: ignore[assignment]  # the exchange sets it
        charge = route.charge
        verdict = charge(ctx, outcome)
        if verdict is None:
            body = []
            if ctx.long is not None:
                body = ctx.encode(outcome)
            elif outcome is not NO_RESPONSE:
                encode = route.encode
                encode(outcome, body)
            self._send(ctx, body)
        elif isinstance(verdict, tuple):  # encoded
            body, size = verdict
            self._send(ctx, body, size)
        else:
            self._carry_out(ctx, verdict)

    def _carry_out(self, ctx: RequestContext, verdict: Verdict | HeldRead) -> None:
        if isinstance(verdict, HeldRead):
            self._waits.hold_read(ctx, verdict)
            self._waits.parked(ctx)
            return
        by = verdict.by
        if verdict.holds and by is not None:
            self._waits.mute(ctx, by, verdict.throttle_ms, partial(self._release, ctx, verdict))
            return
        self._send(ctx, ctx.encode(verdict.response), verdict=verdict)
        if verdict.charges_encoding:
            self._throttler.charge_encoding(ctx)
        if by is not None:
            self._waits.mute(ctx, by, verdict.throttle_ms, ctx.session.connection.resume)

    def _release(self, ctx: RequestContext, verdict: Verdict) -> None:
        """Send a response whose throttle time is over (KIP-13), or charge it again."""
        connection = ctx.session.connection
        connection.unpark()
        if verdict.then is None:
            self._large.run(ctx, lambda: self._send(ctx, ctx.encode(verdict.response)))
        elif not connection.closed:
            self._carry_out(ctx, verdict.then(ctx))
        if not connection.waiting:
            connection.resume()

    def send_token(self, ctx: RequestContext, token: bytes) -> None:
        """Send a SASL token without a header, the response to one of SaslHandshake v0."""
        ctx.session.connection.send(_SIZE.pack(len(token)), [token] if token else [], _SIZE.size + len(token))

    def _send(self, ctx: RequestContext, body: Parts, size: int = 0, verdict: Verdict | None = None) -> None:
        """Send an encoded response, or end a request without one; `size` is that of the body, if it is known."""
        route: Route = ctx.route  # type: ignore[assignment]  # the exchange sets it
        fault = ctx.fault
        if fault is not None:
            ctx.fault = None
            body, size = fault.answering(body) if body else body, 0
        head = b""
        if body:
            size = route.header_bytes + (size or (len(body[0]) if len(body) == 1 else sum(map(len, body))))
            pack_head = route.pack_head
            head = pack_head(size, ctx.correlation_id)
        if self.journal is not None:
            self.journal.answered(ctx, body, size)
        connection = ctx.session.connection
        if fault is None:
            if body:
                connection.send(head, body, 4 + size)
        elif body:
            for frame in fault.leaving(b"".join((head, *body))):
                connection.send(frame, [], len(frame))
            mute = fault.sent()
            if mute is not None and (verdict is None or verdict.by is None):  # else the quota sets the time
                self.begin(ctx, mute)
        read = self._read
        if ctx.error_code or connection.started_ms != read.began_ms:
            read.count(ctx, route)
        else:
            read.responded.append(route)  # counted with the others
