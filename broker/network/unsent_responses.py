"""The bound on responses that the clients of one broker do not read (`sluice.queued.max.response.bytes`).

A connection with unsent responses handles no further request. When all of these exceed the bound, those that accepted
no bytes for longest are closed. Records in the log do not count; those of deleted segments have the same bound. Kafka
has no such bound.
"""

from collections import deque
from collections.abc import Iterable
from typing import Protocol

from sluice.broker.log.segment_memory import RetainedMemory

PROPERTY = "sluice.queued.max.response.bytes"
# Responses up to this size are joined and written by one send.
JOIN_BYTES = 64 * 1024
# The transport gets large responses in such pieces: until Python 3.12 it copies unsent ones.
PIECE_BYTES = 128 * 1024


class Closable(Protocol):
    def close(self, reason: str) -> None:
        """Abort, and log `reason`."""

    def references(self, retained: RetainedMemory) -> bool:
        """Return whether unsent bytes are in memory that is `retained`."""


class UnsentResponses:
    def __init__(self, limit_bytes: int | None) -> None:
        """Accept up to `limit_bytes` (None: no limit), or more of a single connection."""
        self._limit_bytes = limit_bytes
        self._held: dict[Closable, int] = {}  # ordered by when they last accepted bytes
        self.held_bytes = 0

    def hold(self, connection: Closable, size: int) -> None:
        """Set the unsent bytes of a connection that has just queued or sent some; apply the bound."""
        self.release(connection)
        self._held[connection] = size
        self.held_bytes += size
        while self._limit_bytes is not None and self.held_bytes > self._limit_bytes and len(self._held) > 1:
            slowest = next(iter(self._held))
            self.release(slowest)
            slowest.close(
                f"unsent responses exceed {PROPERTY}={self._limit_bytes}; this client did not read for longest"
            )

    def close_readers_of(self, retained: RetainedMemory) -> None:
        """Close connections that reference deleted segments, until these are within the bound."""
        for connection in [*self._held]:
            if self._limit_bytes is None or retained.size_in_bytes <= self._limit_bytes:
                break
            if connection.references(retained):
                self.release(connection)
                connection.close(f"unsent records of deleted segments exceed {PROPERTY}={self._limit_bytes}")

    def release(self, connection: Closable) -> None:
        self.held_bytes -= self._held.pop(connection, 0)


def memory_of(parts: Iterable[memoryview]) -> int:
    """Return the bytes that only `parts` keep in memory; records are not `bytes` but the log's memory."""
    responses = (part.obj for part in parts)
    return sum(len(response) for response in responses if isinstance(response, bytes))


def take_piece(parts: deque[memoryview]) -> bytes | memoryview:
    """Remove the next bytes: a piece of a large part, or several small parts, joined."""
    if len(parts[0]) >= JOIN_BYTES:
        return _cut(parts, PIECE_BYTES)
    piece: list[memoryview] = []
    room = JOIN_BYTES
    while parts and room:
        piece.append(_cut(parts, room))
        room -= len(piece[-1])
    return b"".join(piece)


def _cut(parts: deque[memoryview], most: int) -> memoryview:
    part = parts.popleft()
    if len(part) > most:
        parts.appendleft(part[most:])
        part = part[:most]
    return part
