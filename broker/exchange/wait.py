"""Waits: how a request is parked and resumed, and how its connection is throttled.

A parked connection is read ahead, so that the end of a client is noticed at once; a muted one is not read, as in Kafka.
"""

from collections.abc import Callable
from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.requests.context import LastResponse, Outcome, RequestContext, Wait
from sluice.broker.throttling.verdict import HeldRead
from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.wire import Parts
from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation
from sluice.quotas.manager import ClientQuotaManager

from .current_read import CurrentRead
from .large_requests import LargeRequests
from .route import Route


class Waits:
    def __init__(
        self,
        broker: Broker,
        large: LargeRequests,
        read: CurrentRead,
        respond: Callable[[RequestContext, Message | Outcome], None],
        send: Callable[[RequestContext, Parts], None],
    ) -> None:
        self._clock = broker.clock
        self._journal = broker.journal
        self._throttler = broker.throttler
        self._throttled = broker.throttled
        self._large = large
        self._read = read
        self._respond = respond
        self._send = send

    def begin(self, ctx: RequestContext, wait: Wait) -> None:
        """Park or mute the connection, and begin the wait, which may be over at once."""
        if wait.cancel is not None:
            connection = ctx.session.connection
            if wait.mutes:
                connection.mute(wait.cancel)
            elif wait.on_next is None:
                connection.park(wait.cancel)
            else:
                connection.park(wait.cancel, partial(_show, ctx, wait.on_next))
            if wait.is_unanswered:
                ctx.session.connection.close_on_eof()
        if wait.begin is not None:
            wait.begin()

    def parked(self, ctx: RequestContext) -> None:
        if self._throttler.quotas.request is not None:
            self._throttler.request_timer.pause(ctx)
        if self._journal is not None:
            self._journal.parked(ctx)

    def mute(self, ctx: RequestContext, by: ClientQuotaManager, throttle_ms: int, resume: Callable[[], None]) -> None:
        """Mute the connection of a request, and call `resume` after the throttle time."""
        operation = ThrottledConnection(by, throttle_ms, resume)
        ctx.session.connection.mute(operation.force_complete)
        self._throttled.delay(operation)

    def hold_read(self, ctx: RequestContext, held: HeldRead) -> None:
        self.mute(ctx, held.by, held.throttle_ms, lambda: self.resume(ctx, held.read))

    def resume(
        self, ctx: RequestContext, respond: Callable[[], Message | Outcome], survives_disconnect: bool = False
    ) -> None:
        """Continue a parked request: `respond` returns its response, or parks it again."""
        connection = ctx.session.connection
        if connection.closed and not (survives_disconnect and connection.ended_by_client):
            return
        ctx.now_ms = self._clock.wall_ms()
        if self._throttler.quotas.request is not None:
            self._throttler.request_timer.resume()
        connection.unpark()
        try:
            self._large.run(ctx, lambda: self._continue(ctx, respond()))
        except Exception:
            connection.fail()
            return
        if not connection.waiting and ctx.long is None:
            connection.resume()
        self._read.resumed()

    def _continue(self, ctx: RequestContext, outcome: Message | Outcome) -> None:
        if ctx.session.connection.closed:
            return
        if ctx.fault is not None and not isinstance(outcome, Wait | HeldRead | LastResponse):
            outcome = ctx.fault.after(outcome)  # may call the handler again
        if isinstance(outcome, LastResponse):
            if outcome.response is not None:
                self._send(ctx, ctx.encode(outcome.response))
            ctx.session.connection.abort()
        elif isinstance(outcome, HeldRead):
            self.hold_read(ctx, outcome)
        elif isinstance(outcome, Wait):
            self.begin(ctx, outcome)
        else:
            self._respond(ctx, outcome)


def _show(ctx: RequestContext, on_next: Callable[[Message], object], frame: memoryview) -> None:
    """Call `on_next` with the request in a frame if it is small, and of the API and version of the one that waits."""
    route: Route = ctx.route  # type: ignore[assignment]  # the exchange sets it
    header = ctx.session.header
    body = header.size + route.flexible
    if not body < len(frame) <= route.inline_bytes:
        return
    api_and_version, _, id_as_sent = header.unpack_from(frame)
    is_same = (api_and_version, id_as_sent) == (route.api_key << 16 | route.version, ctx.session.id_as_sent)
    if not is_same or (route.flexible and frame[header.size]):  # the latter: tagged fields, which clients do not send
        return
    try:
        request, _ = route.decode(frame, body, len(frame))
    except RemoteProtocolError:  # raised again when it is handled
        return
    on_next(request)


class ThrottledConnection(DelayedOperation):
    """A connection throttled by a quota (Kafka's ThrottledChannel), counted in its `queue_size`.

    It expires after its throttle time, or when its connection closes; then it calls `resume`.
    """

    __slots__ = ("_by", "_resume")

    def __init__(self, by: ClientQuotaManager, throttle_ms: int, resume: Callable[[], None]) -> None:
        super().__init__(throttle_ms)
        self._by = by
        self._resume = resume
        by.queue_size += 1

    def on_complete(self) -> None:
        self._by.queue_size -= 1
        self._resume()
