"""What came of requests, as attempts.

A broker that holds a request does not read its connection meanwhile, so that it notices only afterwards that the client
has gone: it answers, and finds the connection closed. Such a request was given up, at a time that nobody has seen. What
tells of it is what came meanwhile: another connection of the same host to the same broker.
"""

from collections.abc import Iterable

from sluice.audit.judge.model.attempts import Attempt, Outcome
from sluice.journal_events import AnyEvent, ConnectionClosed, ConnectionOpened, Request

_NS_PER_MS = 1_000_000
# Answers that take longer may have been held.
_HELD_NS = 50 * _NS_PER_MS
_AT_ONCE_NS = 20 * _NS_PER_MS


class Outcomes:
    """How the requests among some events ended."""

    def __init__(self, events: Iterable[AnyEvent]) -> None:
        self._closed_ns: dict[int, int] = {}  # by connection, of those that the client ended
        self._opened_ns: dict[tuple[str, int], list[int]] = {}  # by host and broker
        self._gone_ns: dict[int, int] = {}  # by connection: when the first answer came that nobody waited for
        held: list[Request] = []
        for event in events:
            if isinstance(event, ConnectionOpened):
                self._opened_ns.setdefault(_where(event), []).append(event.at_ns)
            elif isinstance(event, ConnectionClosed) and event.by_client:
                self._closed_ns[event.connection] = event.at_ns
            elif isinstance(event, Request) and event.answered_ns and event.at_ns - event.received_ns > _HELD_NS:
                held.append(event)
        for request in held:
            if self._was_left(request):
                self._gone_ns.setdefault(request.connection, request.at_ns)

    def attempt(self, request: Request) -> Attempt:
        """A request as a try."""
        outcome, ended_ns = self._end(request)
        return Attempt(
            at_ns=request.received_ns,
            ended_ns=ended_ns,
            outcome=outcome,
            error_codes=[] if outcome is Outcome.ABANDONED else list(request.error_codes),
            connection=request.connection,
            broker=request.broker,
            throttle_time_ms=request.throttle_time_ms,
        )

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


def _where(event: ConnectionOpened | Request) -> tuple[str, int]:
    return event.peer.rpartition(":")[0], event.broker
