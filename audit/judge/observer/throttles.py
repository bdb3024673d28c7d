"""Throttle times that clients were told, and what they did on those connections until they were over (KIP-219).

Only versions count whose clients wait by themselves; others may send at once, and are not read.

Requests that were on their way when the answer left are none that came too early. A broker sees them come before the
answer was written, or as soon as it reads again, which is when it was; so does one that the client sends before it has
read the answer. All that come within `slack_ms` of the answer are taken to be such.
"""

from collections.abc import Iterable

import msgspec

from sluice.journal_events import AnyEvent, Request
from sluice.protocol.apis import API_KEYS

_SLACK_MS = 10.0


class ThrottledSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that told a throttle time.

    api: of the request
    connection: on which it came
    told_ns: when the answer left
    throttle_time_ms: as it told
    early_ms: when requests came on that connection before it was over, from `told_ns`
    next_ms: when the first came that did not come too early and was not on its way; null: none did
    """

    api: str
    connection: int
    told_ns: int
    throttle_time_ms: int
    early_ms: list[float]
    next_ms: float | None


def throttled_spans(
    events: Iterable[AnyEvent], *, slack_ms: float = _SLACK_MS, early_ms: float = 1.0
) -> list[ThrottledSpan]:
    """All of them, by when they were told. What comes `early_ms` before the end, or less, does not come too early."""
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
    return sorted(spans, key=lambda span: span.told_ns)


def must_wait(request: Request) -> bool:
    """Return whether a client waits out the throttle time of this version's response itself."""
    api = API_KEYS.get(request.api_key)
    return api is not None and api.client_throttles(request.version)


def _span(request: Request, requests: list[Request], slack_ms: float, early_ms: float) -> ThrottledSpan | None:
    told_ns = request.written_ns
    if not request.throttle_time_ms or told_ns is None or not must_wait(request):
        return None
    came_ms = sorted((each.received_ns - told_ns) / 1e6 for each in requests if each is not request)
    after_ms = [at_ms for at_ms in came_ms if at_ms > slack_ms]
    over_ms = request.throttle_time_ms - early_ms
    return ThrottledSpan(
        api=request.api,
        connection=request.connection,
        told_ns=told_ns,
        throttle_time_ms=request.throttle_time_ms,
        early_ms=[at_ms for at_ms in after_ms if at_ms < over_ms],
        next_ms=next((at_ms for at_ms in after_ms if at_ms >= over_ms), None),
    )
