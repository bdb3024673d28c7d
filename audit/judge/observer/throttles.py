"""Throttle times in responses, and what clients did on those connections until they had passed (KIP-219).

Only versions count in which the client enforces the throttle. In earlier ones clients may send at once.

Requests in flight when the response was written are not early: the broker may have received them before, may read them
only after muting, or the client sent them before it read the response. All requests within `slack_ms` after the
response count as in flight.
"""

from collections.abc import Iterable

import msgspec

from sluice.journal_events import AnyEvent, Request
from sluice.protocol.apis import API_KEYS

_SLACK_MS = 10.0


class ThrottledSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One response with a throttle time.

    api: API of the request
    connection: its connection
    sent_ns: when the response was written
    throttle_time_ms: its throttle time
    early_ms: arrivals of requests on that connection during the throttle, since `sent_ns`
    next_ms: arrival of the first request after the throttle; null: none
    """

    api: str
    connection: int
    sent_ns: int
    throttle_time_ms: int
    early_ms: list[float]
    next_ms: float | None


def throttled_spans(
    events: Iterable[AnyEvent], *, slack_ms: float = _SLACK_MS, early_ms: float = 1.0
) -> list[ThrottledSpan]:
    """Return spans by time. Requests in the last `early_ms` do not count as early."""
    by_connection: dict[int, list[Request]] = {}
    for event in events:
        if isinstance(event, Request):
            by_connection.setdefault(event.connection, []).append(event)
    spans = [
        span
        for requests in by_connection.values()
        for request in requests
        if (span := _span(request, requests, slack_ms, early_ms)) is not None
    ]
    return sorted(spans, key=lambda span: span.sent_ns)


def must_wait(request: Request) -> bool:
    api = API_KEYS.get(request.api_key)
    return api is not None and api.client_throttles(request.version)


def _span(request: Request, requests: list[Request], slack_ms: float, early_ms: float) -> ThrottledSpan | None:
    sent_ns = request.written_ns
    if not request.throttle_time_ms or sent_ns is None or not must_wait(request):
        return None
    came_ms = sorted((each.received_ns - sent_ns) / 1e6 for each in requests if each is not request)
    after_ms = [at_ms for at_ms in came_ms if at_ms > slack_ms]
    over_ms = request.throttle_time_ms - early_ms
    return ThrottledSpan(
        api=request.api,
        connection=request.connection,
        sent_ns=sent_ns,
        throttle_time_ms=request.throttle_time_ms,
        early_ms=[at_ms for at_ms in after_ms if at_ms < over_ms],
        next_ms=next((at_ms for at_ms in after_ms if at_ms >= over_ms), None),
    )
