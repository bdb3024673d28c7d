"""Attempts and sequences of attempts. An attempt is one try of an operation; a sequence is all its tries in order.

A client's wait is the time from the end of one attempt, as seen by the broker, to the arrival of the next.
"""

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """The attempted operation: a connection, or a kind of request with a separate backoff."""

    CONNECT = "connect"
    PRODUCE = "produce"
    METADATA = "metadata"
    FETCH = "fetch"
    LIST_OFFSETS = "list-offsets"
    FIND_COORDINATOR = "find-coordinator"
    JOIN_GROUP = "join-group"
    SYNC_GROUP = "sync-group"
    HEARTBEAT = "heartbeat"
    OFFSET_COMMIT = "offset-commit"
    OFFSET_FETCH = "offset-fetch"
    INIT_PRODUCER_ID = "init-producer-id"
    ADMIN = "admin"


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"  # of a connection: its first request (usually ApiVersions) was answered without an error
    ERROR = "error"
    DISCONNECTED = "disconnected"  # the broker closed the connection without a response
    ABANDONED = "abandoned"  # the client closed the connection before the response
    UNANSWERED = "unanswered"  # none of these until the observation ended


# How an accepted connection can fail. Only the client sees refused connections.
CLOSED = "accepted, then closed"
SILENT = "accepted, never answered"
AFTER_VERSIONS = "dropped after ApiVersions was answered"
LOST = "lost after it worked"
REJECTED = "rejected login"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt.

    at_ns: when the connection was accepted, or the request's last byte read
    ended_ns: when the client could know the outcome: the response was written, or the connection closed; null: never
    broker: node id of the broker that received it
    unread_since_ns: the broker had not read the connection since then, so the client may have sent it at any time
        since; null: the broker was reading
    """

    at_ns: int
    ended_ns: int | None
    outcome: Outcome
    error_codes: list[int] = []
    connection: int = -1
    broker: int = -1
    throttle_time_ms: int = 0
    unread_since_ns: int | None = None

    @property
    def sent_from_ns(self) -> int:
        """The earliest time at which the client can have sent it."""
        return self.at_ns if self.unread_since_ns is None else self.unread_since_ns


class AttemptSequence(msgspec.Struct, frozen=True, kw_only=True):
    """All attempts of one operation.

    key: its identity, such as orders-0@4000.0.17 for a batch, or client, broker and role for a connection
    attempts: at least one, ordered by at_ns
    path: for connections, how most of the failed ones ended, one of the above; "" if none failed
    doubt: why its attempts may belong to several operations; "" if they are surely of one
    """

    kind: Kind
    key: str
    attempts: list[Attempt]
    path: str = ""
    doubt: str = ""

    def gaps_ms(self) -> list[float]:
        """Return the waits before each attempt but the first; negative if it came before the last one ended."""
        return [
            (after.at_ns - (before.at_ns if before.ended_ns is None else before.ended_ns)) / 1e6
            for before, after in zip(self.attempts, self.attempts[1:], strict=False)
        ]
