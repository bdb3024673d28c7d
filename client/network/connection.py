"""One connection to a broker: requests out, whole answers in, what is in flight. An asyncio protocol that decides
nothing; the NetworkClient does.

Answers are cut out of the stream by `protocol.frame`. Small ones lie in a buffer that the next read overwrites; a large
one has a buffer of its own, which lives as long as its records are looked at: they are never copied.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from typing import Protocol

from sluice.client.metadata.cluster import Node
from sluice.errors import RemoteProtocolError
from sluice.protocol.frame import FramePool, FrameReader

from .in_flight import Exchange

# Until 3.12, asyncio's writelines joins its arguments into one copy.
_WRITES_BY_REFERENCE = sys.version_info >= (3, 12)
# Requests up to this size are joined and written by one send; of larger ones, parts up to it. Where a larger one takes
# a send for each part, copying a batch of 64 KiB costs less than a second send and a second read at the broker.
_JOIN_BYTES = (16 if _WRITES_BY_REFERENCE else 64) * 1024
# A broker is believed what it says: any size that the prefix can hold.
_LARGEST_FRAME_BYTES = 2**31 - 1
# A short frame that was cut leaves room for what comes behind it: else each read would bring a few bytes.
_LEAST_BUFFER_BYTES = 4096


class AnswerPool(FramePool):
    """Buffers that are not used again: someone may still read the records in them."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None)

    def take(self, size: int) -> bytearray:
        """Hardly larger than is asked for: it will not have to fit again, and all of it is cleared."""
        return bytearray(max(size, _LEAST_BUFFER_BYTES))

    def give(self, buffer: bytearray) -> None:
        """Leaves the buffer to whoever has views on it."""


class ConnectionEvents(Protocol):
    """Who is told what happens to a connection."""

    def connection_made(self, connection: "Connection") -> None: ...

    def frame_received(self, connection: "Connection", view: memoryview, start: int, end: int) -> None:
        """`view[start:end]` is an answer. Raises RemoteProtocolError where it cannot be read."""

    def connection_broken(self, connection: "Connection", error: RemoteProtocolError) -> None:
        """The broker broke the protocol."""

    def connection_lost(self, connection: "Connection", error: Exception | None) -> None: ...

    def connection_writable(self, connection: "Connection") -> None:
        """What was to be sent has gone out."""


class Cancelable(Protocol):
    """Something under way."""

    def cancel(self) -> object: ...


class Connection(asyncio.BufferedProtocol):
    """Made by the NetworkClient for each attempt to connect."""

    __slots__ = (
        "_events",
        "_pool",
        "_reader",
        "_transport",
        "attempt",
        "in_flight",
        "is_closed",
        "is_paused",
        "last_active_ms",
        "next_correlation_id",
        "node",
        "node_id",
    )

    def __init__(self, node: Node, events: ConnectionEvents, pool: AnswerPool, now_ms: float) -> None:
        self.node = node
        self.node_id = node.id
        self._events = events
        self._pool = pool
        self._reader = FrameReader(pool, _LARGEST_FRAME_BYTES)
        self._transport: asyncio.Transport | None = None
        self.attempt: Cancelable | None = None  # until there is a connection
        self.in_flight: deque[Exchange] = deque()
        self.is_closed = False  # by us
        self.is_paused = False  # the broker does not take what was written
        self.last_active_ms = now_ms
        self.next_correlation_id = 0

    # -- what asyncio calls --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self.is_closed:  # given up in the very turn in which it came about
            transport.abort()
            return
        self._transport = transport
        self.attempt = None
        self._events.connection_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._reader.close()
        if not self.is_closed:
            self._events.connection_lost(self, exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        reader = self._reader
        if not reader.received(nbytes):
            return
        try:
            while self._transport is not None and reader.next_frame():
                self._events.frame_received(self, reader.view, reader.start, reader.end)
        except RemoteProtocolError as error:
            self._events.connection_broken(self, error)
        if self._transport is None:
            reader.drop_rest()
        reader.keep_rest()

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        self._events.connection_writable(self)

    # -- what the NetworkClient calls ----------------------------------------------------------------------------------

    def is_overwritten(self, view: memoryview) -> bool:
        """Whether the next read goes where this answer lies."""
        return view is self._pool.scratch

    def write(self, parts: list[bytes | memoryview], size: int) -> None:
        """Sends `parts`, together `size` bytes; large ones by reference."""
        transport = self._transport
        assert transport is not None, "written to a connection that is closed"
        if size <= _JOIN_BYTES:
            transport.write(b"".join(parts))
        elif _WRITES_BY_REFERENCE:
            transport.writelines(parts)
        else:
            _write_parts(transport.write, parts)

    def close(self) -> None:
        """As `abort`, but what was written still leaves, if the broker takes it."""
        transport = self._transport
        if transport is not None and not self.is_paused:
            self.is_closed = True
            self._transport = None
            transport.close()
        else:
            self.abort()

    def abort(self) -> None:
        """Closes at once, or gives up connecting; nothing is told of it any more."""
        self.is_closed = True
        if self.attempt is not None:
            self.attempt.cancel()
            self.attempt = None
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()


def _write_parts(write: Callable[[bytes | memoryview], None], parts: list[bytes | memoryview]) -> None:
    """In as few calls as possible without copying a large part."""
    small: list[bytes | memoryview] = []
    for part in parts:
        if len(part) <= _JOIN_BYTES:
            small.append(part)
            continue
        if small:
            write(b"".join(small))
            small = []
        write(part)
    if small:
        write(b"".join(small))
