"""The timers of a member of a classic group (Kafka's Heartbeat). Time is a parameter.

heartbeat.interval.ms    interval of heartbeats; after a failed one, a growing backoff (KIP-580)
session.timeout.ms       without a response for this long, the coordinator is looked up again
max.poll.interval.ms     without a poll for this long, the member leaves the group (KIP-62)
"""

from sluice.client.backoff import Backoff


class Heartbeats:
    def __init__(self, interval_ms: int, session_timeout_ms: int, max_poll_interval_ms: int, backoff: Backoff) -> None:
        self._interval_ms = interval_ms
        self._session_timeout_ms = session_timeout_ms
        self._max_poll_interval_ms = max_poll_interval_ms
        self._backoff = backoff
        self._failures = 0
        self.is_in_flight = False
        self.due_ms = self.session_expires_ms = self.poll_due_ms = 0.0

    def begin(self, now_ms: float) -> None:
        """Restart all timers except the poll timer."""
        self.is_in_flight = False
        self._failures = 0
        self.due_ms = now_ms + self._interval_ms
        self.session_expires_ms = now_ms + self._session_timeout_ms

    def polled(self, now_ms: float) -> None:
        self.poll_due_ms = now_ms + self._max_poll_interval_ms

    def sent(self, now_ms: float) -> None:
        self.is_in_flight = True
        self.due_ms = now_ms + self._interval_ms

    def succeeded(self, now_ms: float) -> None:
        self.is_in_flight = False
        self._failures = 0
        self.session_expires_ms = now_ms + self._session_timeout_ms

    def failed(self, now_ms: float) -> None:
        """Record a heartbeat without a response, or with a retriable error."""
        self.is_in_flight = False
        self.due_ms = now_ms + self._backoff.backoff(self._failures)
        self._failures += 1

    def is_session_over(self, now_ms: float) -> bool:
        return now_ms >= self.session_expires_ms

    def is_poll_overdue(self, now_ms: float) -> bool:
        return now_ms >= self.poll_due_ms

    def next_ms(self) -> float:
        return min(self.session_expires_ms, self.poll_due_ms, *(() if self.is_in_flight else (self.due_ms,)))
