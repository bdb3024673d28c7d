"""The three ways to throttle a request above its quota: `MUTE`, `HOLD` and `WITHHOLD`.

An example for all three: the quota is 1,000 bytes/s over ten windows of 1 s, and the client was idle. At t = 0 it sends
a request that is charged 12,000 bytes. The average is back at the quota after 12,000 / 1,000 - 10 = 2 s.

| | `MUTE` (KIP-219) | `HOLD` (KIP-13) | `WITHHOLD` (Kafka up to 1.1) |
|---|---|---|---|
| response to Produce | sent at 0 s | sent at 2 s | sent at 2 s |
| response to Fetch | empty, sent at 0 s | reads at 2 s, sent at 2 s | reads at 0 s, sent at 2 s |
| charge of a throttled Fetch | cancelled: nothing was sent | corrected to the size sent at 2 s | unchanged |
| connection is read again | at 2 s | at 2 s | at 2 s |
| also 3 s above the request quota | 3 s in all | 3 s in all | 2 s, then up to 3 s more |
| `throttle_time_ms` | the time still to come | the time that has passed | the time that has passed |

With KIP-13, a throttle time above `request.timeout.ms` made the client disconnect and send again, which was charged
again. A client that implements KIP-219 backs off for `throttle_time_ms`, so `HOLD` would throttle it twice: 2 s before
and 2 s after the response.
"""

from collections.abc import Callable

from msgspec import Struct

from sluice.broker.requests.context import FetchOutcome, Outcome, RequestContext
from sluice.protocol.apis.fetch import FetchResponse
from sluice.protocol.message import Message
from sluice.quotas.manager import ClientQuotaManager

from .profile import Throttling
from .request_charges import RequestCharges
from .verdict import HeldRead, Verdict

_Fetch = FetchOutcome | None  # None if the request names an unknown session
# In all functions, `other_ms` is the throttle time for bytes or mutations that `manager` requires, or 0.
_Charge = Callable[[RequestCharges, RequestContext, Message | Outcome, int, "ClientQuotaManager | None", bool], Verdict]
# The last arguments: the throttle time for bytes, the charged bytes, and the time in ms.
_ThrottleFetch = Callable[[RequestCharges, RequestContext, _Fetch, Message, int, int, int], Verdict | None]


class ThrottlingMode(Struct, frozen=True):
    """One way to throttle.

    Args:
        holds: Whether a response waits for the throttle time.
        charge: Charges request time and decides about a response.
        throttle_fetch: Charges request time and decides about a Fetch response; returns None to send it at once. None
            if a Fetch is charged before it reads (`charge_before_read`).
    """

    holds: bool
    charge: _Charge
    throttle_fetch: _ThrottleFetch | None


def charge_exempt(
    charges: RequestCharges,
    ctx: RequestContext,
    response: Message | Outcome,
    other_ms: int,
    manager: ClientQuotaManager | None,
    holds: bool,
) -> Verdict:
    """Decide about a request without a request quota, such as Produce with acks=0, in any mode."""
    now_ms = charges.time.at(ctx.now_ms)
    charges.charge_time_exempt(ctx, now_ms)
    if other_ms <= 0:
        return Verdict(response)
    by = charges.record_throttle(ctx, manager, other_ms, 0, now_ms)
    if charges.is_shadow:
        return Verdict(response)
    return Verdict(response, throttle_ms=other_ms, by=by, holds=holds)


def charge_before_read(
    charges: RequestCharges, ctx: RequestContext, size: int, read: Callable[[int], Message | Outcome]
) -> Message | Outcome:
    """Charge a Fetch, in `HOLD`, the size in the log's indexes, so that no records wait in memory.

    Return `read(0)`, or the outcome that reads after the throttle time.
    """
    manager = charges.quotas.fetch
    now_ms = charges.time.at(ctx.now_ms)
    byte_ms = manager.record(ctx.session.user, ctx.session.client_id, size, now_ms)
    request_ms = charges.charge_time(ctx, now_ms)
    throttle_ms = max(byte_ms, request_ms)
    if throttle_ms <= 0:
        return read(0)
    by = charges.record_throttle(ctx, manager, byte_ms, request_ms, now_ms)
    return HeldRead(throttle_ms, by, lambda: read(throttle_ms))


def correct_charge_before_read(
    charges: RequestCharges, ctx: RequestContext, fetch: _Fetch, size: int, now_ms: int
) -> None:
    session = ctx.session
    difference = size - (0 if fetch is None else fetch.charged_bytes)
    charges.quotas.fetch.record_no_throttle(session.user, session.client_id, difference, now_ms)
    charges.charge_time_no_throttle(ctx, now_ms)


def _charge_together(
    charges: RequestCharges,
    ctx: RequestContext,
    response: Message | Outcome,
    other_ms: int,
    manager: ClientQuotaManager | None,
    holds: bool,
) -> Verdict:
    """Throttle for the longer of two throttle times."""
    now_ms = charges.time.at(ctx.now_ms)
    request_ms = charges.charge_time(ctx, now_ms)
    throttle_ms = max(other_ms, request_ms)
    if throttle_ms <= 0:
        return Verdict(response, charges_encoding=True)
    by = charges.record_throttle(ctx, manager, other_ms, request_ms, now_ms)
    if charges.is_shadow:
        return Verdict(response, charges_encoding=True)
    _set_throttle_time(response, throttle_ms)
    return Verdict(response, throttle_ms=throttle_ms, by=by, holds=holds, charges_encoding=not holds)


def _charge_one_after_the_other(
    charges: RequestCharges,
    ctx: RequestContext,
    response: Message | Outcome,
    other_ms: int,
    manager: ClientQuotaManager | None,
    holds: bool,
) -> Verdict:
    """Charge request time after the throttle time for bytes or mutations. The response states the sum of both."""

    def charge_request_time(ctx: RequestContext) -> Verdict:
        now_ms = charges.time.at(ctx.now_ms)
        request_ms = charges.charge_time(ctx, now_ms)
        _set_throttle_time(response, other_ms + request_ms)
        if request_ms <= 0:
            return Verdict(response, charges_encoding=True)
        by = charges.record_throttle(ctx, None, 0, request_ms, now_ms)
        return Verdict(response, throttle_ms=request_ms, by=by, holds=holds)

    def resume(ctx: RequestContext) -> Verdict:
        ctx.now_ms = charges.clock.wall_ms()
        charges.request_timer.resume()
        return charge_request_time(ctx)

    if other_ms <= 0:
        return charge_request_time(ctx)
    by = charges.record_throttle(ctx, manager, other_ms, 0, charges.time.at(ctx.now_ms))
    if charges.quotas.request is not None:
        charges.request_timer.pause(ctx)
    return Verdict(response, throttle_ms=other_ms, by=by, holds=holds, then=resume)


def _empty_above_quota(
    charges: RequestCharges, ctx: RequestContext, fetch: _Fetch, _: Message, byte_ms: int, charged: int, now_ms: int
) -> Verdict | None:
    session = ctx.session
    manager = charges.quotas.fetch
    request_ms = charges.charge_time(ctx, now_ms)
    if byte_ms <= 0 and request_ms <= 0:
        return None
    by = charges.record_throttle(ctx, manager, byte_ms, request_ms, now_ms)
    if charges.is_shadow:
        return None
    # The records are not sent, so they are not charged: the client fetches them again.
    manager.unrecord(session.user, session.client_id, charged, now_ms)
    throttle_ms = max(byte_ms, request_ms)
    return Verdict(_empty_response(ctx, fetch, throttle_ms), throttle_ms=throttle_ms, by=by)


def hold_above_quota(
    charges: RequestCharges, ctx: RequestContext, _: _Fetch, response: Message, byte_ms: int, __: int, ___: int
) -> Verdict:
    """Charge a Fetch after the read, in `HOLD`: a proxy knows its size only then."""
    return _charge_together(charges, ctx, response, byte_ms, charges.quotas.fetch, True)


def _withhold_above_quota(
    charges: RequestCharges, ctx: RequestContext, _: _Fetch, response: Message, byte_ms: int, __: int, ___: int
) -> Verdict:
    return _charge_one_after_the_other(charges, ctx, response, byte_ms, charges.quotas.fetch, True)


MODES = {
    Throttling.MUTE: ThrottlingMode(False, _charge_together, _empty_above_quota),
    Throttling.HOLD: ThrottlingMode(True, _charge_together, None),
    Throttling.WITHHOLD: ThrottlingMode(True, _charge_one_after_the_other, _withhold_above_quota),
}


def _set_throttle_time(response: Message | Outcome, throttle_ms: int) -> None:
    """Set the throttle time, unless that of the upstream broker in a proxy is longer."""
    if hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = max(response.throttle_time_ms, throttle_ms)


def _empty_response(ctx: RequestContext, fetch: _Fetch, throttle_ms: int) -> Message:
    if fetch is not None:
        return fetch.throttled(throttle_ms)
    ctx.error_code = 0  # as in Kafka, the response does not report that the session is unknown
    return FetchResponse(throttle_time_ms=throttle_ms)
