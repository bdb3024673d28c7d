"""The three ways to throttle a request above its quota: `Mute`, `Hold` and `Withhold`.

An example for all three: the quota is 1,000 bytes/s over ten windows of 1 s, and the client was idle. At t = 0 it sends
a request that is charged 12,000 bytes. The average is back at the quota after 12,000 / 1,000 - 10 = 2 s.

| | `Mute` (KIP-219) | `Hold` (KIP-13) | `Withhold` (Kafka up to 1.1) |
|---|---|---|---|
| response to Produce | sent at 0 s | sent at 2 s | sent at 2 s |
| response to Fetch | empty, sent at 0 s | reads at 2 s, sent at 2 s | reads at 0 s, sent at 2 s |
| charge of a throttled Fetch | cancelled: nothing was sent | corrected to the size sent at 2 s | unchanged |
| connection is read again | at 2 s | at 2 s | at 2 s |
| also 3 s above the request quota | 3 s in all | 3 s in all | 2 s, then up to 3 s more |
| `throttle_time_ms` | the time still to come | the time that has passed | the time that has passed |

A client that implements KIP-219 backs off for `throttle_time_ms`, so `Hold` would throttle it twice: 2 s before and 2 s
after the response.
"""

from collections.abc import Callable
from functools import partial

from sluice.broker.requests.context import PARKED, FetchInProgress, Outcome, RequestContext
from sluice.protocol.message import Message
from sluice.quotas.manager import ClientQuotaManager

from .request_charges import RequestCharges, throttle_times_of
from .throttled_channel import HeldFetch, HeldResponse, MutedChannel

EncodedBody = list[bytes | memoryview]
_SIZE_BYTES = 4  # charged with a fetch response, as in Kafka's FetchResponse.sizeOf
_Fetch = FetchInProgress | None  # None if the request names an unknown session


class ThrottlingMode:
    """One way to throttle; `other_ms` is the throttle time for bytes or mutations that `manager` requires, or 0."""

    __slots__ = ("_charges",)

    def __init__(self, charges: RequestCharges) -> None:
        self._charges = charges

    def finish(
        self, ctx: RequestContext, response: Message | Outcome, other_ms: int, manager: ClientQuotaManager | None
    ) -> None:
        """Charge request time, and send the response when this mode allows it."""
        raise NotImplementedError

    def finish_exempt(
        self, ctx: RequestContext, response: Message | Outcome, other_ms: int, manager: ClientQuotaManager | None
    ) -> None:
        """Finish a request without a request quota, such as Produce with acks=0."""
        raise NotImplementedError

    def finish_fetch(self, ctx: RequestContext, response: Message) -> None:
        """Charge the size of the response, except to a follower, and respond as this mode requires."""
        fetch, ctx.fetch = ctx.fetch, None
        body: EncodedBody
        if ctx.long is None:  # cheaper than `encode`
            body = []
            ctx.route.encode(response, body)
        else:
            body = ctx.encode(response)
        size = sum(map(len, body))
        now_ms = self._charges.time.at(ctx.now_ms)
        if fetch is not None and fetch.is_from_follower:
            self._charges.charge_time_exempt(ctx, now_ms)
        elif not self._charge_fetch(ctx, fetch, response, size, now_ms):
            return
        # A response that opens a session is encoded again, with its id.
        if fetch is not None and fetch.sent(response):
            body = ctx.encode(response)
            size = sum(map(len, body))
        ctx.responder.send(ctx, body, size)
        # A throttle time is recorded already.
        if self._charges.quotas.fetch.quotas_enabled and not getattr(response, "throttle_time_ms", 0):
            stats = (ctx.session.throttle_times or throttle_times_of(ctx.session)).fetch
            stats.zeros += 1
            if now_ms >= stats.put_by_ms:
                stats.put_zeros(now_ms)

    def _charge_fetch(self, ctx: RequestContext, fetch: _Fetch, response: Message, size: int, now_ms: int) -> bool:
        """Return whether the caller sends the response."""
        raise NotImplementedError

    def _answer(self, ctx: RequestContext, response: Message | Outcome, now_ms: int) -> None:
        """Send now, then charge the time of the encoding."""
        ctx.responder.answer(ctx, response)
        self._charges.charge_time_no_throttle(ctx, now_ms)


class Mute(ThrottlingMode):
    """KIP-219 (Kafka 2.0 and later): send the response at once, then mute the connection for the throttle time.

    With KIP-13, a throttle time above `request.timeout.ms` made the client disconnect and send again, which was charged
    again.
    """

    __slots__ = ()

    def finish(
        self, ctx: RequestContext, response: Message | Outcome, other_ms: int, manager: ClientQuotaManager | None
    ) -> None:
        charges = self._charges
        now_ms = charges.time.at(ctx.now_ms)
        request_ms = charges.charge_time(ctx, now_ms)
        throttle_ms = max(other_ms, request_ms)
        if throttle_ms <= 0:
            self._answer(ctx, response, now_ms)
            return
        by = charges.record_throttle(ctx, manager, other_ms, request_ms, now_ms)
        _set_throttle_time(response, throttle_ms)
        self._answer(ctx, response, now_ms)
        charges.delay(ctx, MutedChannel(ctx, by, throttle_ms))

    def finish_exempt(
        self, ctx: RequestContext, response: Message | Outcome, other_ms: int, manager: ClientQuotaManager | None
    ) -> None:
        charges = self._charges
        now_ms = charges.time.at(ctx.now_ms)
        charges.charge_time_exempt(ctx, now_ms)
        if other_ms <= 0:
            ctx.responder.answer(ctx, response)
            return
        by = charges.record_throttle(ctx, manager, other_ms, 0, now_ms)
        ctx.responder.answer(ctx, response)
        charges.delay(ctx, MutedChannel(ctx, by, other_ms))

    def _charge_fetch(self, ctx: RequestContext, fetch: _Fetch, response: Message, size: int, now_ms: int) -> bool:
        charges, session = self._charges, ctx.session
        manager = charges.quotas.fetch
        request_ms = 0 if charges.quotas.request is None else charges.charge_time(ctx, now_ms)
        byte_ms = manager.record(session.user, session.client_id, _SIZE_BYTES + size, now_ms)
        if byte_ms <= 0 and request_ms <= 0:
            return True
        by = charges.record_throttle(ctx, manager, byte_ms, request_ms, now_ms)
        # The records are not sent, so they are not charged: the client fetches them again.
        manager.unrecord(session.user, session.client_id, _SIZE_BYTES + size, now_ms)
        throttle_ms = max(byte_ms, request_ms)
        ctx.responder.answer(ctx, _empty_response(ctx, fetch, throttle_ms))
        charges.delay(ctx, MutedChannel(ctx, by, throttle_ms))
        return False


class Hold(ThrottlingMode):
    """KIP-13: mute the connection, and send the response when the throttle time is over.

    A fetch is charged before it reads, by the size in the log's indexes (`charge_before_read`). It reads after the
    throttle time, so no records wait in memory.
    """

    __slots__ = ()

    def finish(
        self, ctx: RequestContext, response: Message | Outcome, other_ms: int, manager: ClientQuotaManager | None
    ) -> None:
        charges = self._charges
        now_ms = charges.time.at(ctx.now_ms)
        request_ms = charges.charge_time(ctx, now_ms)
        throttle_ms = max(other_ms, request_ms)
        if throttle_ms <= 0:
            self._answer(ctx, response, now_ms)
            return
        by = charges.record_throttle(ctx, manager, other_ms, request_ms, now_ms)
        _set_throttle_time(response, throttle_ms)
        charges.delay(ctx, HeldResponse(ctx, by, throttle_ms, partial(ctx.responder.answer, ctx, response)))

    def finish_exempt(
        self, ctx: RequestContext, response: Message | Outcome, other_ms: int, manager: ClientQuotaManager | None
    ) -> None:
        charges = self._charges
        now_ms = charges.time.at(ctx.now_ms)
        charges.charge_time_exempt(ctx, now_ms)
        if other_ms <= 0:
            ctx.responder.answer(ctx, response)
            return
        by = charges.record_throttle(ctx, manager, other_ms, 0, now_ms)
        charges.delay(ctx, HeldResponse(ctx, by, other_ms, partial(ctx.responder.answer, ctx, response)))

    def charge_before_read(
        self, ctx: RequestContext, size: int, read: Callable[[int], Message | Outcome]
    ) -> Message | Outcome:
        charges, manager = self._charges, self._charges.quotas.fetch
        ctx.charged_bytes = size
        now_ms = charges.time.at(ctx.now_ms)
        byte_ms = manager.record(ctx.session.user, ctx.session.client_id, size, now_ms)
        request_ms = charges.charge_time(ctx, now_ms)
        throttle_ms = max(byte_ms, request_ms)
        if throttle_ms <= 0:
            return read(0)
        by = charges.record_throttle(ctx, manager, byte_ms, request_ms, now_ms)
        charges.delay(ctx, HeldFetch(ctx, by, throttle_ms, read))
        return PARKED

    def _charge_fetch(self, ctx: RequestContext, fetch: _Fetch, response: Message, size: int, now_ms: int) -> bool:
        charges, session = self._charges, ctx.session
        charged_bytes, ctx.charged_bytes = ctx.charged_bytes, 0
        difference = _SIZE_BYTES + size - charged_bytes
        charges.quotas.fetch.record_no_throttle(session.user, session.client_id, difference, now_ms)
        charges.charge_time_no_throttle(ctx, now_ms)
        return True


class Withhold(Hold):
    """Kafka up to 1.1: as `Hold`, but a fetch reads first, and two throttle times are served one after the other.

    Request time is charged after the first throttle time. The response states the sum of both.
    """

    __slots__ = ()

    def finish(
        self, ctx: RequestContext, response: Message | Outcome, other_ms: int, manager: ClientQuotaManager | None
    ) -> None:
        if other_ms <= 0:
            self._finish_request_time(ctx, response, 0)
            return
        charges = self._charges
        by = charges.record_throttle(ctx, manager, other_ms, 0, charges.time.at(ctx.now_ms))
        if charges.quotas.request is not None:
            charges.request_timer.pause(ctx)
        charges.delay(ctx, HeldResponse(ctx, by, other_ms, partial(self._resume, ctx, response, other_ms)))

    def _resume(self, ctx: RequestContext, response: Message | Outcome, served_ms: int) -> None:
        if not ctx.connection.closed:
            ctx.now_ms = self._charges.clock.wall_ms()
            self._charges.request_timer.resume()
            self._finish_request_time(ctx, response, served_ms)

    def _finish_request_time(self, ctx: RequestContext, response: Message | Outcome, served_ms: int) -> None:
        charges = self._charges
        now_ms = charges.time.at(ctx.now_ms)
        request_ms = charges.charge_time(ctx, now_ms)
        _set_throttle_time(response, served_ms + request_ms)
        if request_ms <= 0:
            self._answer(ctx, response, now_ms)
            return
        by = charges.record_throttle(ctx, None, 0, request_ms, now_ms)
        charges.delay(ctx, HeldResponse(ctx, by, request_ms, partial(ctx.responder.answer, ctx, response)))

    def _charge_fetch(self, ctx: RequestContext, fetch: _Fetch, response: Message, size: int, now_ms: int) -> bool:
        quotas, session = self._charges.quotas, ctx.session
        byte_ms = quotas.fetch.record(session.user, session.client_id, _SIZE_BYTES + size, now_ms)
        if byte_ms <= 0 and quotas.request is None:
            return True
        if fetch is not None:
            fetch.sent(response)
        self.finish(ctx, response, byte_ms, quotas.fetch)
        return False


def throttle_time_of(response: Message | Outcome) -> int:
    """Return the response's throttle time; 0 if its class has none."""
    throttle_ms: int = getattr(response, "throttle_time_ms", 0)
    return throttle_ms


def _set_throttle_time(response: Message | Outcome, throttle_ms: int) -> None:
    if hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = throttle_ms


def _empty_response(ctx: RequestContext, fetch: _Fetch, throttle_ms: int) -> Message:
    if fetch is not None:
        return fetch.throttled(throttle_ms)
    ctx.error_code = 0  # as in Kafka, the response does not report that the session is unknown
    from sluice.protocol.apis.fetch import FetchResponse

    return FetchResponse(throttle_time_ms=throttle_ms)
