"""The outcomes of requests as attempts.

A broker that delays a response does not read the connection: only when it writes the response does it detect that the
client has left. Such a request was abandoned at an unknown time; the evidence is another connection of the same host to
the broker in between. Requests that the client sent meanwhile are read late: at any time since the broker stopped
reading, they may have been sent.
"""

from collections.abc import Container, Iterable, Sequence
from math import inf

from sluice.audit.judge.model.attempts import Attempt, Outcome
from sluice.journal_events import AnyEvent, ConnectionClosed, ConnectionOpened, Request

_NS_PER_MS = 1_000_000
_HELD_NS = 50 * _NS_PER_MS
_AT_ONCE_NS = 20 * _NS_PER_MS
# A client may not have read a response that was sent this shortly before the connection ended.
_READ_WITHIN_NS = 50 * _NS_PER_MS
# A request that arrives this shortly after a response may have been sent before it.
_CROSSED_NS = 10 * _NS_PER_MS
# A client without a known request.timeout.ms may give a request up after this time.
_GIVEN_UP_MS = 500.0


class Outcomes:
    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self._closed_ns: dict[int, int] = {}  # by connection; only those closed by the client
        self._opened_ns: dict[tuple[str, int], list[int]] = {}
        self._gone_ns: dict[int, int] = {}  # by connection: the first response after the client had left
        self._unread: dict[int, list[tuple[int, int]]] = {}  # by connection: when the broker did not read it
        delayed: list[Request] = []
        for event in events:
            if isinstance(event, ConnectionOpened):
                self._opened_ns.setdefault(_where(event), []).append(event.at_ns)
            elif isinstance(event, ConnectionClosed) and event.by_client:
                self._closed_ns[event.connection] = event.at_ns
            elif isinstance(event, Request):
                until_ns = event.at_ns + event.throttle_time_ms * _NS_PER_MS
                if until_ns - event.received_ns > _HELD_NS:
                    span = event.received_ns, until_ns + _AT_ONCE_NS
                    self._unread.setdefault(event.connection, []).append(span)
                if event.answered_ns and event.at_ns - event.received_ns > _HELD_NS:
                    delayed.append(event)
        self._unread = {number: _merged(sorted(spans)) for number, spans in self._unread.items()}
        for request in delayed:
            if self._was_left(request):
                self._gone_ns.setdefault(request.connection, request.at_ns)

    def attempt(self, request: Request) -> Attempt:
        outcome, ended_ns = self._end(request)
        return Attempt(
            at_ns=request.received_ns,
            ended_ns=ended_ns,
            outcome=outcome,
            error_codes=[] if outcome is Outcome.ABANDONED else list(request.error_codes),
            connection=request.connection,
            broker=request.broker,
            throttle_time_ms=request.throttle_time_ms,
            unread_since_ns=self._unread_since_ns(request),
        )

    def _unread_since_ns(self, request: Request) -> int | None:
        spans = self._unread.get(request.connection, ())
        return next((begin for begin, end in spans if begin < request.received_ns <= end), None)

    def _end(self, request: Request) -> tuple[Outcome, int | None]:
        gone_ns = self._gone_ns.get(request.connection)
        if gone_ns is not None and request.at_ns >= gone_ns:
            return Outcome.ABANDONED, None
        if request.answered_ns is None:
            is_by_client = request.connection in self._closed_ns
            return (Outcome.ABANDONED if is_by_client else Outcome.DISCONNECTED), request.at_ns
        return (Outcome.ERROR if request.error_codes else Outcome.SUCCEEDED), request.written_ns or request.answered_ns

    def _was_left(self, request: Request) -> bool:
        closed_ns = self._closed_ns.get(request.connection)
        if closed_ns is None or not 0 <= closed_ns - request.at_ns <= _AT_ONCE_NS:
            return False
        opened_ns = self._opened_ns.get(_where(request), [])
        return any(request.received_ns < at_ns <= request.at_ns for at_ns in opened_ns)


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for begin, end in spans:
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return merged


def maybe_unread(events: Iterable[AnyEvent], lag_ms: float = 0.0) -> set[tuple[int, int]]:
    """Find requests, by connection and arrival, that a fault rule hit, or whose response just preceded the close."""
    events = list(events)
    within_ns = _READ_WITHIN_NS + round(lag_ms * _NS_PER_MS)
    ended_ns = {event.connection: event.at_ns for event in events if isinstance(event, ConnectionClosed)}
    return {
        (event.connection, event.received_ns)
        for event in events
        if isinstance(event, Request)
        and (event.rule_id or ended_ns.get(event.connection, inf) - event.at_ns < within_ns)
    }


def is_resent(
    attempts: Sequence[Attempt],
    cut: Container[tuple[int, int]] = (),
    timeout_ms: float | None = None,
    lag_ms: float = 0.0,
) -> bool:
    """Return whether a batch was certainly sent again after an acknowledgement that the client certainly read.

    Not certain are attempts in `cut` (`maybe_unread`), and acknowledgements of requests that the client may have given
    up before (`timeout_ms`). Attempts that the broker read late may have been sent before the acknowledgement.
    """
    timeout_ns = round((_GIVEN_UP_MS if timeout_ms is None else timeout_ms) * _NS_PER_MS)
    certain = [attempt for attempt in attempts if (attempt.connection, attempt.at_ns) not in cut]
    read_ns = [
        attempt.ended_ns + _CROSSED_NS + round(lag_ms * _NS_PER_MS)
        for attempt in certain
        if attempt.outcome is Outcome.SUCCEEDED
        and attempt.ended_ns is not None
        and attempt.ended_ns - attempt.sent_from_ns < timeout_ns
    ]
    return bool(read_ns) and certain[-1].sent_from_ns > min(read_ns)


def _where(event: ConnectionOpened | Request) -> tuple[str, int]:
    return event.peer.rpartition(":")[0], event.broker
