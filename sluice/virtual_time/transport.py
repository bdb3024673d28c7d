"""An in-memory TCP connection: two transports, and a wire in each direction between them.

Written bytes wait in the transport's buffer (above the high-water mark its protocol is paused), pass over the wire, and
wait in the peer's receive buffer until it reads them. WINDOW_BYTES limits the last two, as with TCP.

As with sockets on Linux:

- A close sends the buffered bytes and then a FIN.
- A close before all bytes were read, and bytes that arrive after a close, cause a reset.
- A FIN or reset is noticed by reading or writing, not while reading is paused.
- Unacknowledged bytes break the connection after a quarter of an hour.

As in asyncio, the calls of a protocol have the context in which its connection was made.
"""

import asyncio
import errno
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import Context
from functools import partial
from random import Random  # noqa: TID251  (only the type of an injected object)
from typing import Protocol

from .link import Link

# Limit of bytes on the wire and unread: about that of Linux between two local processes.
WINDOW_BYTES = 256 * 1024
# Bytes sent at once if the bandwidth is limited.
SEGMENT_BYTES = 16 * 1024
# asyncio's default; the low-water mark is a quarter of it.
HIGH_WATER_BYTES = 64 * 1024
# Linux gives up after tcp_retries2 (15) retries.
GIVE_UP_S = 924.6
_CLOSE_BY_RESET = struct.pack("ii", 1, 0)
_END = b""


class MemorySocket:
    """The result of `get_extra_info("socket")`: its addresses and options.

    SO_LINGER with 0 s makes a close a reset; other options have no effect.
    """

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(
        self,
        here: tuple[str, int],
        there: tuple[str, int] | None = None,
        release: Callable[[], object] = lambda: None,
    ) -> None:
        """`release` closes a listening socket."""
        self._here = here
        self._there = there
        self.close = release
        self._options: dict[tuple[int, int], int | bytes] = {}

    def getsockname(self) -> tuple[str, int]:
        return self._here

    def getpeername(self) -> tuple[str, int]:
        if self._there is None:
            raise OSError(errno.ENOTCONN, "a listening socket has no peer")
        return self._there

    def listen(self, backlog: int) -> None:
        """Do nothing: the queue of connections is unlimited."""

    def fileno(self) -> int:
        return -1

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        self._options[level, option] = value

    def getsockopt(self, level: int, option: int, length: int = 0) -> int | bytes:
        return self._options.get((level, option), bytes(length) if length else 0)

    @property
    def closes_by_reset(self) -> bool:
        return self._options.get((socket.SOL_SOCKET, socket.SO_LINGER)) == _CLOSE_BY_RESET


class Path(Protocol):
    """The current state of the network between two ends."""

    link: Link
    is_instant: bool  # without delay
    is_blocked: bool  # by `partition` or `forget`
    random: Random

    def left(self) -> None:
        """Handle the close of an end."""


class Wire:
    """One direction of a connection: bytes arrive in order, when the network permits."""

    __slots__ = ("_arrivals", "_free_at", "_give_up", "_last_at", "_late", "_loop", "_on_broken", "_path", "context")

    def __init__(self, path: Path, loop: asyncio.AbstractEventLoop, on_broken: Callable[[], None]) -> None:
        self._path = path
        self._loop = loop
        self._on_broken = on_broken
        self._arrivals: deque[Callable[[], None]] = deque()
        self._late = 0  # number of arrivals that became due during a partition
        self._free_at = 0.0  # until then the bandwidth is used up
        self._last_at = 0.0  # time of the last delayed arrival; later ones may not precede it
        self._give_up: asyncio.TimerHandle | None = None
        self.context: Context | None = None  # of the receiver

    @property
    def segment_bytes(self) -> int:
        link = self._path.link
        return link.segment_bytes or (WINDOW_BYTES if link.bytes_per_s is None else SEGMENT_BYTES)

    def send(self, size: int, arrive: Callable[[], None]) -> None:
        """Send `size` bytes; call `arrive` when they arrive."""
        self._arrivals.append(arrive)
        if self._path.is_instant and not self._last_at:
            self._loop.call_soon(self._next, context=self.context)
            return
        arrives_at = now = self._loop.time()
        link = self._path.link
        if link.bytes_per_s is not None:
            self._free_at = arrives_at = max(self._free_at, now) + size / link.bytes_per_s
        arrives_at += link.delay_s(self._path.random)
        if arrives_at <= now >= self._last_at:
            self._loop.call_soon(self._next, context=self.context)
        else:
            self._last_at = max(self._last_at, arrives_at)
            self._loop.call_at(self._last_at, self._next, context=self.context)

    def release(self) -> None:
        """End a partition: delayed bytes arrive."""
        if self._give_up is not None:
            self._give_up.cancel()
            self._give_up = None
        late, self._late = self._late, 0
        for _ in range(late):
            self._loop.call_soon(self._next, context=self.context)

    def _next(self) -> None:
        if not self._path.is_blocked:
            self._arrivals.popleft()()
            return
        self._late += 1
        if self._give_up is None:
            self._give_up = self._loop.call_later(GIVE_UP_S, self._on_broken)


class MemoryTransport(asyncio.Transport):
    """One end of a connection. As in asyncio, it never calls its protocol within a call."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        path: Path,
        here: tuple[str, int],
        there: tuple[str, int],
        context: Context,
    ) -> None:
        self._socket = MemorySocket(here, there)
        super().__init__({"socket": self._socket, "sockname": here, "peername": there})
        self._loop = loop
        self._path = path
        self.context = context
        self.wire = Wire(path, loop, partial(self._end, TimeoutError(errno.ETIMEDOUT, "Connection timed out")))
        self.peer: MemoryTransport = self  # until the other end exists
        self.set_protocol(asyncio.BaseProtocol())
        # Writing.
        self._out: deque[bytes | memoryview] = deque()
        self._out_bytes = 0
        self._unread = 0  # bytes on the wire, or received by the peer and unread
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._is_protocol_paused = False
        self._wrote_eof = False
        self._sent_end = False
        # Reading.
        self._in: deque[bytes | memoryview] = deque()
        self._in_end: bytes | Exception | None = None  # the FIN or reset that follows _in
        self._is_paused = True  # until `start`
        self._reads_soon = False
        # Closing.
        self._is_closing = False
        self._is_lost = False  # connection_lost was called, or is due in the next event-loop iteration
        self.is_closed = False

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        self.set_protocol(protocol)
        try:
            protocol.connection_made(self)
        except Exception as error:
            self._fail(error, "connection_made")
        self._is_paused = False
        self._read_soon()

    # -- called by a protocol: reading -------------------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        self._buffered = protocol if isinstance(protocol, asyncio.BufferedProtocol) else None

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_reading(self) -> bool:
        return not self._is_closing and not self._is_paused

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        if self._is_paused and not self._is_closing:
            self._is_paused = False
            self._read_soon()

    # -- writing -----------------------------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._wrote_eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if self._is_closing:
            return
        if self._in_end is not None and isinstance(self._in_end, Exception):
            self._end(self._in_end)  # an unread reset
            return
        size = len(data)
        if 0 < size <= WINDOW_BYTES - self._unread and self._path.is_instant:  # nothing waits in _out
            self._unread += size
            self.wire.send(size, partial(self.peer._arrived, bytes(data)))
        elif size:
            self._out.append(bytes(data))
            self._out_bytes += size
            self._flush()
            self._notify_protocol()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        if not self._is_closing and not self._wrote_eof:
            self._wrote_eof = True
            self._flush()

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return self._out_bytes

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high, self._low = high, low
        self._notify_protocol()

    # -- closing -----------------------------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._flush()

    def abort(self) -> None:
        self._end(None)

    def reset(self) -> None:
        if not self.is_closed and not isinstance(self._in_end, Exception):
            self._in_end = ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
            if self._out:
                self._end(self._in_end)
            self._read()

    # -- internal ----------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        while self._out and self._unread < WINDOW_BYTES:
            data = self._out.popleft()
            most = min(WINDOW_BYTES - self._unread, self.wire.segment_bytes)
            if len(data) > most:
                rest = memoryview(data)[most:]
                self._out.appendleft(rest)
                data = memoryview(data)[:most]
            self._out_bytes -= len(data)
            self._unread += len(data)
            self.wire.send(len(data), partial(self.peer._arrived, data))
        if not self._out:
            if self._wrote_eof:
                self._send_end()
            if self._is_closing:
                self._end(None)

    def _send_end(self) -> None:
        if not self._sent_end:
            self._sent_end = True
            self.wire.send(0, self.peer._ended)

    def _notify_protocol(self) -> None:
        if not self._is_protocol_paused and self._out_bytes > self._high:
            self._is_protocol_paused = True
            self._protocol.pause_writing()
        elif self._is_protocol_paused and self._out_bytes <= self._low:
            self._is_protocol_paused = False
            self._protocol.resume_writing()

    def _arrived(self, data: bytes | memoryview) -> None:
        if self.is_closed:
            self._send_reset()
        else:
            self._in.append(data)
            self._read()

    def _ended(self) -> None:
        if not self.is_closed and self._in_end is None:
            self._in_end = _END
            self._read()

    def _write_more(self) -> None:
        if not self._is_lost:
            self._flush()
            self._notify_protocol()

    def _read_soon(self) -> None:
        if not self._reads_soon:
            self._reads_soon = True
            self._loop.call_soon(self._read_now, context=self.context)

    def _read_now(self) -> None:
        self._reads_soon = False
        self._read()

    def _read(self) -> None:
        if self._is_paused or self._is_closing:
            return
        if self._in:
            try:
                size = self._feed()
            except Exception as error:
                self._fail(error, "reading")
                return
            peer = self.peer
            peer._unread -= size
            if peer._out:
                peer._write_more()
            if self._in or self._in_end is not None:
                self._read_soon()
        elif isinstance(self._in_end, Exception):
            self._end(self._in_end)
        elif self._in_end is not None:
            self._read_end()

    def _feed(self) -> int:
        """Pass received bytes to the protocol; return their number."""
        buffered, data = self._buffered, self._in.popleft()
        if self._in:
            data = b"".join((data, *self._in))
            self._in.clear()
        if buffered is None:
            self._protocol.data_received(bytes(data))  # type: ignore[attr-defined]  # of asyncio.Protocol
            return len(data)
        buffer = memoryview(buffered.get_buffer(-1))
        size = len(data)
        if size > len(buffer):
            size = len(buffer)
            self._in.append(memoryview(data)[size:])
            data = memoryview(data)[:size]
        buffer[:size] = data
        buffered.buffer_updated(size)
        return size

    def _read_end(self) -> None:
        self._is_paused = True  # nothing follows
        assert isinstance(self._protocol, asyncio.Protocol | asyncio.BufferedProtocol)
        try:
            keeps_open = self._protocol.eof_received()
        except Exception as error:
            self._fail(error, "eof_received")
            return
        if not keeps_open:
            self.close()

    def _fail(self, error: Exception, where: str) -> None:
        context = {"message": f"{where} failed", "exception": error, "transport": self, "protocol": self._protocol}
        self._loop.call_exception_handler(context)
        self._end(error)

    def _end(self, error: Exception | None) -> None:
        """Drop unsent bytes; notify the protocol in the next iteration."""
        if not self._is_lost:
            self._is_lost = self._is_closing = True
            self._out.clear()
            self._out_bytes = 0
            self._loop.call_soon(self._disconnect, error, context=self.context)

    def _disconnect(self, error: Exception | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self.is_closed = True
            if self._in or self._socket.closes_by_reset:
                self._send_reset()
            elif not isinstance(self._in_end, Exception):
                self._send_end()
            self._path.left()

    def _send_reset(self) -> None:
        if not self._path.is_blocked:  # a reset is not retransmitted: a partition drops it
            self.wire.send(0, self.peer.reset)
