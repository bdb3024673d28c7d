"""Throttle times in responses, and what clients did on those connections until they had passed (KIP-219).

Only API versions whose clients enforce throttles are included. A request is early only if it was certainly sent after
the response could be read. Not certain are requests that arrive

- within a round trip, measured on the same journal, and the lag of the broker's timers after the response;
- while an earlier request of the connection waits for its response, or just after: the broker does not read meanwhile;
- just after the fault ended: the connection may have been muted until then.
"""

from collections.abc import Iterable, Sequence

import msgspec

from sluice.journal_events import AnyEvent, Request
from sluice.protocol.apis import API_KEYS

_SLACK_MS = 10.0
# Measured round trips beyond this are pauses of the client.
_LONGEST_TRIP_MS = 100.0
_TRIP_SHARE = 0.9  # share of the measured round trips that are shorter than the assumed one
_NS_PER_MS = 1_000_000
API_VERSIONS = "ApiVersions"


class ThrottledSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One response with a throttle time.

    early_ms: arrivals of requests that were certainly sent during the throttle, since `sent_ns`
    next_ms: arrival of the first request after the throttle; null: none
    """

    api: str
    connection: int
    sent_ns: int
    throttle_time_ms: int
    early_ms: list[float]
    next_ms: float | None


def throttled_spans(
    events: Iterable[AnyEvent], *, slack_ms: float = _SLACK_MS, early_ms: float = 1.0, fault_until_ns: int | None = None
) -> list[ThrottledSpan]:
    """Return spans by time. Requests in the last `early_ms` do not count as early."""
    by_connection: dict[int, list[Request]] = {}
    for event in events:
        if isinstance(event, Request):
            by_connection.setdefault(event.connection, []).append(event)
    slack_ms += round_trip_ms(by_connection.values())
    spans = [
        span
        for requests in by_connection.values()
        for request in requests
        if (span := _span(request, requests, slack_ms, early_ms, fault_until_ns)) is not None
    ]
    return sorted(spans, key=lambda span: span.sent_ns)


def must_wait(request: Request) -> bool:
    api = API_KEYS.get(request.api_key)
    return api is not None and api.client_throttles(request.version)


def round_trip_ms(connections: Iterable[Sequence[Request]]) -> float:
    """Return the time in which most requests arrive that immediately follow an ApiVersions response."""
    trips: list[float] = []
    for requests in connections:
        first, *rest = sorted(requests, key=lambda each: each.received_ns)
        if rest and first.api == API_VERSIONS and first.written_ns is not None:
            trips.append((rest[0].received_ns - first.written_ns) / _NS_PER_MS)
    usual = sorted(trip for trip in trips if 0 <= trip <= _LONGEST_TRIP_MS) or [_LONGEST_TRIP_MS] * bool(trips)
    return usual[round((len(usual) - 1) * _TRIP_SHARE)] if usual else 0.0


def _span(
    request: Request, requests: Sequence[Request], slack_ms: float, early_ms: float, fault_until_ns: int | None
) -> ThrottledSpan | None:
    sent_ns = request.written_ns
    if not request.throttle_time_ms or sent_ns is None or not must_wait(request):
        return None
    read_ns = sent_ns + round(slack_ms * _NS_PER_MS)
    others = [each for each in requests if each is not request]
    unread_until_ns = max((each.at_ns for each in others if each.received_ns <= read_ns), default=0)
    certain_ns = max(read_ns, unread_until_ns + round(slack_ms * _NS_PER_MS))
    held_from_ns, held_until_ns = 0, 0
    if fault_until_ns is not None and fault_until_ns > read_ns:
        held_from_ns, held_until_ns = fault_until_ns, fault_until_ns + round(2 * slack_ms * _NS_PER_MS)
    after_ms = sorted(
        (each.received_ns - sent_ns) / _NS_PER_MS
        for each in others
        if each.received_ns > certain_ns and not held_from_ns <= each.received_ns < held_until_ns
    )
    over_ms = request.throttle_time_ms - early_ms
    return ThrottledSpan(
        api=request.api,
        connection=request.connection,
        sent_ns=sent_ns,
        throttle_time_ms=request.throttle_time_ms,
        early_ms=[at_ms for at_ms in after_ms if at_ms < over_ms],
        next_ms=next((at_ms for at_ms in after_ms if at_ms >= over_ms), None),
    )
