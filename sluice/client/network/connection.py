"""One connection to a broker: an asyncio protocol that leaves all decisions to the NetworkClient.

The next read overwrites small responses; a large one has its own buffer, so that its records are never copied.
"""

import asyncio
from collections import deque
from typing import Protocol

from sluice.client.metadata.cluster import Node
from sluice.errors import RemoteProtocolError
from sluice.protocol.frame import POOL_FREE_BYTES, Buffer, FramePool, FrameReader

from .in_flight import Exchange
from .tls import connection_error

# Requests up to this size are joined: copying them costs less than a second send and a second read at the broker.
_JOIN_BYTES = 16 * 1024
_LARGEST_FRAME_BYTES = 2**31 - 1
# Before the connection is ready; Kafka's largest SASL token has 512 KiB. It recognizes servers of other protocols.
_LARGEST_SETUP_BYTES = 1 << 20
_LEAST_BUFFER_BYTES = 4096


class ResponsePool(FramePool):
    """Buffers that are not reused, because records in them may be in use.

    A size prefix may be garbage: `HTTP` means 1.2 GB, too much to zero. A memory mapping uses only what arrives.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None)

    def take(self, size: int) -> Buffer:
        """Return a buffer of little more than `size`, because all of it is zeroed."""
        return super().take(size) if size > POOL_FREE_BYTES else bytearray(max(size, _LEAST_BUFFER_BYTES))

    def give(self, buffer: Buffer) -> None:
        """Do nothing; views keep the buffer alive."""


class ConnectionEvents(Protocol):
    def connection_made(self, connection: "Connection") -> None: ...

    def frame_received(self, connection: "Connection", view: memoryview, start: int, end: int) -> None:
        """Raise RemoteProtocolError if the response in `view[start:end]` is malformed."""

    def connection_broken(self, connection: "Connection", error: RemoteProtocolError) -> None:
        """Handle a malformed response."""

    def connection_lost(self, connection: "Connection", error: Exception | None) -> None: ...

    def connection_writable(self, connection: "Connection") -> None:
        """Handle the end of back-pressure: all written data was sent."""


class Cancelable(Protocol):
    def cancel(self) -> object: ...


class Connection(asyncio.BufferedProtocol):
    def __init__(self, node: Node, events: ConnectionEvents, pool: ResponsePool, now_ms: float) -> None:
        self.node = node
        self.node_id = node.id
        self._events = events
        self._pool = pool
        self._reader = FrameReader(pool, _LARGEST_SETUP_BYTES)
        self._reader.limit(_LARGEST_SETUP_BYTES, "the first response")
        self._transport: asyncio.Transport | None = None
        self.attempt: Cancelable | None = None  # until connected
        self.in_flight: deque[Exchange] = deque()
        self.is_closed = False
        self.is_paused = False
        self.last_active_ms = now_ms
        self.next_correlation_id = 0

    # -- asyncio callbacks ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if self.is_closed:  # aborted in the same event-loop iteration
            transport.abort()
            return
        self._transport = transport
        self.attempt = None
        self._events.connection_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._reader.close()
        if not self.is_closed:
            self._events.connection_lost(self, connection_error(exc))

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

    # -- methods for the NetworkClient ---------------------------------------------------------------------------------

    def accept_large_responses(self) -> None:
        self._reader.limit(_LARGEST_FRAME_BYTES, "int32")

    def is_overwritten(self, view: memoryview) -> bool:
        return view is self._pool.scratch

    def write(self, parts: list[bytes | memoryview], size: int) -> None:
        """Send `parts`; since Python 3.12, large ones by reference."""
        assert self._transport is not None, "write to a closed connection"
        if size <= _JOIN_BYTES:
            self._transport.write(b"".join(parts))
        else:
            self._transport.writelines(parts)

    def close(self) -> None:
        """Close after sending written data; abort if the write buffer is full."""
        transport = self._transport
        if transport is not None and not self.is_paused:
            self.is_closed = True
            self._transport = None
            transport.close()
        else:
            self.abort()

    def abort(self) -> None:
        """Close immediately or stop connecting, without further callbacks."""
        self.is_closed = True
        if self.attempt is not None:
            self.attempt.cancel()
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
