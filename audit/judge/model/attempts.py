"""An attempt is one try of a client to get something done, and a sequence is all tries of the same thing, in order.

What a client waited is the time from the end of one attempt, as the broker saw it, to the beginning of the next.
"""

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What is tried: a connection, or one kind of call; each is retried by rules of its own."""

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
    """What came of an attempt."""

    SUCCEEDED = "succeeded"  # of a connection: ApiVersions, or the first request, was answered without an error
    ERROR = "error"  # an answer with an error code
    DISCONNECTED = "disconnected"  # the broker closed it, or never answered and closed
    ABANDONED = "abandoned"  # the client closed the connection before it was answered
    UNANSWERED = "unanswered"  # neither, as long as anybody looked


# How a connection that was accepted can fail. What is refused before is seen by nobody but the client.
CLOSED, SILENT, AFTER_VERSIONS, LOST = PATHS = (
    "accepted, then closed",
    "accepted, never answered",
    "dropped after ApiVersions was answered",
    "lost after it worked",
)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try.

    at_ns: when it came: the connection was accepted, the request's last byte read
    ended_ns: when the client could know what came of it: the answer written, the connection closed; null: never
    outcome: what came of it
    error_codes: those in the answer
    connection: number of its connection
    broker: node id of the broker that it came to
    throttle_time_ms: as the answer told
    """

    at_ns: int
    ended_ns: int | None
    outcome: Outcome
    error_codes: list[int] = []
    connection: int = -1
    broker: int = -1
    throttle_time_ms: int = 0


class AttemptSequence(msgspec.Struct, frozen=True, kw_only=True):
    """All tries of the same thing.

    kind: of what
    key: of which, such as orders-0@4000.0.17 of a batch, or the instance, broker and role of a connection
    attempts: at least one, by at_ns
    path: of connections: how most of those ended that failed, one of PATHS; "" where none did
    """

    kind: Kind
    key: str
    attempts: list[Attempt]
    path: str = ""

    def gaps_ms(self) -> list[float]:
        """What was waited before each attempt but the first; negative where it came before the last one ended."""
        return [
            (after.at_ns - (before.at_ns if before.ended_ns is None else before.ended_ns)) / 1e6
            for before, after in zip(self.attempts, self.attempts[1:], strict=False)
        ]
