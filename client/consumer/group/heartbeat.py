"""When a member of a classic group sends heartbeats, and when it is given up: Kafka's Heartbeat. Time is a parameter.

heartbeat.interval.ms    from one to the next that is sent; after one that failed, a backoff that grows (KIP-580)
session.timeout.ms       without an answer for so long, the coordinator is taken for lost
max.poll.interval.ms     without a poll for so long, the member leaves: it does not work on what it has (KIP-62)
"""

from sluice.client.backoff import Backoff


class Heartbeats:
    """Those of one member."""

    def __init__(self, interval_ms: int, session_timeout_ms: int, max_poll_interval_ms: int, backoff: Backoff) -> None:
        self._interval_ms = interval_ms
        self._session_timeout_ms = session_timeout_ms
        self._max_poll_interval_ms = max_poll_interval_ms
        self._backoff = backoff
        self._failures = 0
        self.is_in_flight = False
        self.due_ms = self.session_expires_ms = self.poll_due_ms = 0.0

    def begin(self, now_ms: float) -> None:
        """The member has joined."""
        self.is_in_flight = False
        self._failures = 0
        self.due_ms = now_ms + self._interval_ms
        self.session_expires_ms = now_ms + self._session_timeout_ms

    def polled(self, now_ms: float) -> None:
        self.poll_due_ms = now_ms + self._max_poll_interval_ms

    def sent(self, now_ms: float) -> None:
        self.is_in_flight = True
        self.due_ms = now_ms + self._interval_ms

    def answered(self, now_ms: float) -> None:
        """The coordinator is there, and knows us."""
        self.is_in_flight = False
        self._failures = 0
        self.session_expires_ms = now_ms + self._session_timeout_ms

    def failed(self, now_ms: float) -> None:
        """No answer, or one that is worth another attempt."""
        self.is_in_flight = False
        self.due_ms = now_ms + self._backoff.backoff(self._failures)
        self._failures += 1

    def is_session_over(self, now_ms: float) -> bool:
        return now_ms >= self.session_expires_ms

    def is_poll_overdue(self, now_ms: float) -> bool:
        return now_ms >= self.poll_due_ms

    def next_ms(self) -> float:
        """When something is to be done, if nothing happens before."""
        return min(self.session_expires_ms, self.poll_due_ms, *(() if self.is_in_flight else (self.due_ms,)))
