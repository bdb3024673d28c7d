"""The transport of a TCP connection: one call between a ready socket and its protocol, and one to the socket's send.

While the event loop reads several sockets, a small write is deferred until it has read them (SendQueue).

Large writes that the socket does not accept are kept by reference, and the protocol is paused above HIGH_WATER_BYTES of
them; asyncio's `writelines` does not pause it before 3.12.9 and 3.13.2 (CVE-2024-12254).
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from struct import Struct

# asyncio's default.
HIGH_WATER_BYTES = 64 * 1024
LOW_WATER_SHARE = 4
# Larger writes are sent at once: there, waking up the client matters less than waiting.
MOST_DEFERRED_BYTES = 4 * 1024

_NO_LINGER = Struct("ii").pack(1, 0)


def reset_at_close(transport: asyncio.BaseTransport) -> None:
    """Make the end of a connection a TCP reset (RST) instead of a FIN; unsent data is discarded."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)


class SendQueue:
    """Small writes to the sockets that an event loop reads in turn, which are sent together.

    A send wakes its client up, which takes a quarter of the send. If responses are sent one after the other, the client
    is still awake, above all a process with many connections. One with 1,000 gets a seventh more responses per second.
    """

    __slots__ = ("is_open", "waiting")

    def __init__(self) -> None:
        self.is_open = False  # whether writes are deferred
        self.waiting: list[SocketTransport] = []

    def flush(self) -> None:
        waiting, self.waiting = self.waiting, []
        for transport in waiting:
            transport.send_deferred()


class SocketTransport(asyncio.Transport):
    __slots__ = (
        "_buffer_updated",
        "_closing",
        "_deferred",
        "_get_buffer",
        "_high_water_bytes",
        "_is_paused",
        "_is_reading",
        "_is_written_by",
        "_loop",
        "_lost",
        "_peer",
        "_protocol",
        "_read_by",
        "_recv_into",
        "_send",
        "_sends",
        "_socket",
        "_unsent",
        "_unsent_bytes",
        "fd",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sock: socket.socket, protocol: asyncio.BufferedProtocol, peer: object
    ) -> None:
        """Serve a connected, non-blocking socket; `start` calls the protocol."""
        self._loop = loop
        self._socket = sock
        self.fd = sock.fileno()
        self._peer = peer
        self._recv_into, self._send = sock.recv_into, sock.send
        self._protocol = protocol
        self._get_buffer, self._buffer_updated = protocol.get_buffer, protocol.buffer_updated
        self._sends: SendQueue = getattr(loop, "sends", None) or SendQueue()
        self._deferred = b""
        self._unsent: deque[bytes | memoryview] = deque()
        self._unsent_bytes = 0
        self._high_water_bytes = HIGH_WATER_BYTES
        self._is_reading = False
        self._read_by: Callable[[], None] | None = None  # in place of the protocol
        self._is_paused = False  # the protocol's writing
        self._is_written_by = False  # a function of `write_by`
        self._closing = False
        self._lost = False  # `connection_lost` was or will be called

    def start(self) -> None:
        """Call `connection_made`, then read unless the protocol has paused reading."""
        self._is_reading = True
        self._protocol.connection_made(self)
        if self._is_reading and not self._closing:
            self._loop.add_reader(self.fd, self._on_readable)

    def get_extra_info(self, name: str, default: object = None) -> object:
        if name == "socket":
            return self._socket
        if name == "peername":
            return self._peer
        if name == "sockname":
            return default if self._lost else self._socket.getsockname()
        return default

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.BufferedProtocol), protocol
        self._protocol = protocol
        self._get_buffer, self._buffer_updated = protocol.get_buffer, protocol.buffer_updated

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._is_reading and not self._closing

    def pause_reading(self) -> None:
        if self._is_reading and not self._closing:
            self._is_reading = False
            self._loop.remove_reader(self.fd)

    def resume_reading(self) -> None:
        if not self._is_reading and not self._closing:
            self._is_reading = True
            self._loop.add_reader(self.fd, self._read_by or self._on_readable)

    def read_by(self, on_readable: Callable[[], None] | None) -> None:
        """Let a function read the socket `fd` in place of the protocol; None: the protocol again."""
        self._read_by = on_readable
        if self._closing:
            return
        if self._is_reading:
            self._loop.add_reader(self.fd, on_readable or self._on_readable)
        elif on_readable is None:
            self.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the unsent bytes above which the protocol is paused, until a quarter is left."""
        assert low is None, low
        self._high_water_bytes = HIGH_WATER_BYTES if high is None else high

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        sends = self._sends
        if sends.is_open and len(data) <= MOST_DEFERRED_BYTES and not self._deferred:
            self._deferred = bytes(data)
            sends.waiting.append(self)
            return
        if self._deferred:
            self.send_deferred()
        self._write_now(data)

    def write_part(self, data: bytes | memoryview) -> bytes:
        """Write what the socket accepts now, if nothing is unsent; return the rest."""
        try:
            sent = self._send(data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self.lose(error)
            return b""
        return bytes(data[sent:])

    def send_deferred(self) -> None:
        data, self._deferred = self._deferred, b""
        if data:
            try:
                self._write_now(data)
            except Exception as error:
                self._fail(error)

    def _write_now(self, data: bytes | bytearray | memoryview) -> None:
        if self._lost:
            return
        if not self._unsent:
            send = self._send
            try:
                sent = send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as error:
                self.lose(error)
                return
            if sent == len(data):
                return
            data = memoryview(data)[sent:]
            self._loop.add_writer(self.fd, self._on_writable)
        if data:
            # Small parts are copied, so as not to keep a large buffer.
            self._unsent.append(bytes(data) if len(data) <= HIGH_WATER_BYTES else memoryview(data))
            self._unsent_bytes += len(data)
            if self._unsent_bytes > self._high_water_bytes and not self._is_paused:
                self._is_paused = True
                self._protocol.pause_writing()

    def write_by(self, on_writable: Callable[[], None] | None) -> None:
        """Let a function write to the socket `fd` when it has room; None: no more. Meanwhile, `write` is not called."""
        if self._lost:
            return
        self._is_written_by = on_writable is not None
        if on_writable is None:
            self._loop.remove_writer(self.fd)
        else:
            self._loop.add_writer(self.fd, on_writable)

    def close(self) -> None:
        self.send_deferred()
        if self._closing:
            return
        self._closing = True
        self._loop.remove_reader(self.fd)
        if not self._unsent:
            self._end(None)

    def abort(self) -> None:
        self.send_deferred()
        self.lose(None)

    def lose(self, error: Exception | None) -> None:
        """End the connection; the protocol gets `error`."""
        if self._lost:
            return
        self._deferred = b""
        if self._unsent:
            self._unsent.clear()
            self._unsent_bytes = 0
            self._loop.remove_writer(self.fd)
        if not self._closing:
            self._closing = True
            self._loop.remove_reader(self.fd)
        self._end(error)

    # -- internals -----------------------------------------------------------------------------------------------------

    def _on_readable(self) -> None:
        receive, get_buffer = self._recv_into, self._get_buffer  # a call through a slot is slower
        try:
            nbytes = receive(get_buffer(-1))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.lose(error)
            return
        try:
            if nbytes:
                updated = self._buffer_updated
                updated(nbytes)
            elif self._protocol.eof_received():
                self._loop.remove_reader(self.fd)  # the protocol may still write
            else:
                self.close()
        except Exception as error:
            self._fail(error)

    def _on_writable(self) -> None:
        unsent = self._unsent
        try:
            while unsent:
                data = unsent[0]
                sent = self._send(data)
                self._unsent_bytes -= sent
                if sent < len(data):
                    unsent[0] = memoryview(data)[sent:]
                    break
                unsent.popleft()
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self.lose(error)
            return
        if not unsent:
            self._loop.remove_writer(self.fd)
        if self._is_paused and self._unsent_bytes <= self._high_water_bytes // LOW_WATER_SHARE:
            self._is_paused = False
            try:
                self._protocol.resume_writing()
            except Exception as error:
                self._fail(error)
                return
        if self._closing and not self._unsent:
            self._end(None)

    def _fail(self, error: Exception) -> None:
        context = {"message": "error of a protocol", "exception": error, "transport": self, "protocol": self._protocol}
        self._loop.call_exception_handler(context)
        self.lose(error)

    def _end(self, error: Exception | None) -> None:
        if not self._lost:
            if self._is_written_by:
                self.write_by(None)
            self._lost = True
            self._loop.call_soon(self._call_connection_lost, error)

    def _call_connection_lost(self, error: Exception | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._socket.close()
