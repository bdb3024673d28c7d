"""A transport with faults: limited bandwidth, held traffic, or a silently dropped connection.

A fault rule inserts it between the socket and the connection (or its TLS). It is a protocol to the socket and a
transport to the layer above. Of several rules, the lowest limit and the first drop apply, and each hold must be
released.

- *limited*: bytes per second in each direction. Input is read in small pieces with pauses, so that TCP slows down the
  client. Output waits here, and the layer above is paused.
- *held*: nothing is handled or sent until the release. A little is read, to notice a client that disconnects.
- *dropped*: discards input and output without notice, as a middlebox that forgot a connection. Unlike there, the
  client's kernel receives acknowledgements, and when the client closes, so does the broker.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from sluice.broker.broker import Broker

from .connection import Connection
from .socket_transport import reset_at_close

if TYPE_CHECKING:
    from .tls_transport import TlsTransport

# A limited transport moves the bytes of this time at once: nearly steady to a client.
PIECE_MS = 10
_CATCH_UP_MS = 50  # lost time that it makes up for, because timers are late
# asyncio's defaults: unsent bytes at which the layer above is paused, and resumed.
HIGH_WATER_BYTES = 64 * 1024
LOW_WATER_BYTES = 16 * 1024
# Bytes that a held transport reads ahead, and one read of a dropped one.
_READ_AHEAD_BYTES = 64 * 1024


def shape_transport(connection: Connection, broker: Broker) -> "ShapedTransport | None":
    """Return the connection's shaped transport, added if missing; None if it has ended."""
    from .tls_transport import TlsTransport

    above: Connection | TlsTransport = connection
    below = connection.transport
    if isinstance(below, TlsTransport):
        above, below = below, below.transport
    if below is None or isinstance(below, ShapedTransport):
        return below
    shaped = ShapedTransport(above, broker)
    shaped.put_under(below)
    return shaped


class RateLimiter:
    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s = bytes_per_s
        self.piece_bytes = max(1, int(bytes_per_s * PIECE_MS / 1e3))
        self._free_ms = 0.0  # when the next byte may move

    def wait_ms(self, now_ms: float) -> float:
        return max(0.0, self._free_ms - now_ms)

    def moved(self, count: int, now_ms: float) -> None:
        self._free_ms = max(self._free_ms, now_ms - _CATCH_UP_MS) + count * 1e3 / self.bytes_per_s


_Limit = tuple[float | None, float | None]
_IdleLimit = tuple[float, Callable[[], object]]


class ShapedTransport(asyncio.BufferedProtocol, asyncio.Transport):
    def __init__(
        self,
        above: "Connection | TlsTransport",
        broker: Broker,
        made: "Callable[[ShapedTransport], object] | None" = None,
    ) -> None:
        """Create a transport below `above`.

        Without `made`, `put_under` must insert it under an open connection. With it, `made` is called for a new client
        and applies faults before `above` receives `connection_made`.
        """
        super().__init__()
        self.above = above
        self._clock = broker.clock
        self._scheduler = broker.scheduler
        self._made = made
        self._socket: asyncio.Transport | None = None
        self._announced = False
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._limits: list[_Limit] = []
        self._in: RateLimiter | None = None
        self._out: RateLimiter | None = None
        self._paused_above = False
        self._paused_here = False
        self._writing_paused = False
        self._socket_full = False
        self._sending_later = False
        self._closing = False
        self._holds = 0
        self._held_input = bytearray()
        self._scratch = memoryview(b"")
        self._idle_limits: list[_IdleLimit] = []
        self._active_ms = broker.clock.monotonic_ms()
        self.on_read: list[Callable[[], None]] = []
        self.on_lost: list[Callable[[], object]] = []
        self.dropped = False

    # -- called by fault rules -----------------------------------------------------------------------------------------

    def put_under(self, below: asyncio.Transport) -> None:
        self._announced = True
        self._socket = below
        self.above.transport = self
        below.set_protocol(self)

    def limit(self, in_bytes_per_s: float | None, out_bytes_per_s: float | None) -> Callable[[], None]:
        """Limit the rates (None: unlimited) until the returned function is called."""
        limit = in_bytes_per_s, out_bytes_per_s
        self._limits.append(limit)
        self._pace()
        return partial(self._remove_limit, limit)

    def hold(self) -> None:
        """Stop handling and sending until `release` is called as many times."""
        self._holds += 1
        self._scratch = memoryview(bytearray(_READ_AHEAD_BYTES))

    def release(self) -> None:
        self._holds -= 1
        if not self._holds:
            self.announce_connection()
            self._handle_held_input()
            self._send()

    def drop_when_idle(self, idle_ms: float, on_dropped: Callable[[], object]) -> Callable[[], None]:
        """Drop the connection once it was idle for `idle_ms`; until then, the returned function cancels this."""
        limit = idle_ms, on_dropped
        self._idle_limits.append(limit)
        self._check_idle()
        return partial(self._idle_limits.remove, limit)

    def drop(self) -> None:
        self.dropped = True
        self._scratch = memoryview(bytearray(_READ_AHEAD_BYTES))
        self._held_input.clear()
        self._unsent.clear()
        self._unsent_bytes = 0
        self._resume_writing_above()
        if self._socket is not None and not self._socket.is_closing():
            self._socket.resume_reading()

    def reset(self) -> None:
        if self._socket is not None:
            reset_at_close(self._socket)
        self.abort()

    def announce_connection(self) -> None:
        if not self._announced:
            self._announced = True
            self.above.connection_made(self)

    # -- called by asyncio ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport
        if self._made is not None:
            self._made(self)
        if not self._holds:
            self.announce_connection()

    def connection_lost(self, exc: Exception | None) -> None:
        self.announce_connection()  # if held until now
        self._socket = None
        self._unsent.clear()
        self._held_input.clear()
        self.above.connection_lost(exc)
        for lost in self.on_lost:
            lost()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self.dropped or self._buffers_input:
            return self._scratch
        buffer = self.above.get_buffer(sizehint)
        return buffer if self._in is None else buffer[: self._in.piece_bytes]

    def buffer_updated(self, nbytes: int) -> None:
        if self.dropped:
            return
        self._active_ms = now_ms = self._clock.monotonic_ms()
        if self._buffers_input:
            self._held_input += self._scratch[:nbytes]
            if len(self._held_input) >= _READ_AHEAD_BYTES:
                self._pause_here()
            return
        self.above.buffer_updated(nbytes)
        for callback in [*self.on_read]:
            callback()
        if self._in is not None:
            self._in.moved(nbytes, now_ms)
            wait_ms = self._in.wait_ms(now_ms)
            if wait_ms > 0:
                self._pause_here()
                self._scheduler.schedule_once(wait_ms, self._resume_socket)

    def eof_received(self) -> bool:
        if self._buffers_input:
            return False  # the client does not wait for responses
        if self.above.eof_received():
            return True
        self._closing = bool(self._unsent)
        return self._closing

    def pause_writing(self) -> None:
        self._socket_full = True
        self._pause_writing_above()

    def resume_writing(self) -> None:
        self._socket_full = False
        self._writing_paused = True  # the socket may have paused the layer above before this transport was inserted
        self._send()
        self._resume_writing_above()

    # -- called by the layer above -------------------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default if self._socket is None else self._socket.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._closing or self._socket is None or self._socket.is_closing()

    def pause_reading(self) -> None:
        self._paused_above = True
        if self._socket is not None and not self.dropped:
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        self._paused_above = False
        if self._held_input:
            self._scheduler.schedule_once(0, self._handle_held_input)  # not from within the caller's own loop
        elif self._socket is not None and not self._paused_here:
            self._socket.resume_reading()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        if self.dropped:
            return
        for data in list_of_data:
            if len(data):
                self._unsent.append(memoryview(data))
                self._unsent_bytes += len(data)
        self._send()
        if self._unsent_bytes > HIGH_WATER_BYTES:
            self._pause_writing_above()

    def get_write_buffer_size(self) -> int:
        return self._unsent_bytes + (0 if self._socket is None else self._socket.get_write_buffer_size())

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._paused_above = True
            if self._socket is None:
                return
            if self._unsent or self._holds:
                self._socket.pause_reading()
            else:
                self._socket.close()

    def abort(self) -> None:
        self._closing = True
        if self._socket is not None:
            self._socket.abort()

    # -- internals -----------------------------------------------------------------------------------------------------

    @property
    def _buffers_input(self) -> bool:
        return self._holds > 0 or bool(self._held_input)

    def _handle_held_input(self) -> None:
        kept = self._held_input
        while kept and not (self._holds or self._paused_above or self._socket is None):
            buffer = self.above.get_buffer(-1)
            count = min(len(buffer), len(kept))
            buffer[:count] = kept[:count]
            del kept[:count]
            self.above.buffer_updated(count)
        if not kept:
            self._resume_socket()

    def _remove_limit(self, limit: _Limit) -> None:
        self._limits.remove(limit)
        self._pace()

    def _pace(self) -> None:
        ins, outs = zip(*self._limits, strict=True) if self._limits else ((), ())
        self._in, self._out = _slowest(ins), _slowest(outs)
        self._sending_later = False  # a timer of the old pace then finds nothing to do
        self._resume_socket()
        self._send()

    def _pause_here(self) -> None:
        self._paused_here = True
        if self._socket is not None:
            self._socket.pause_reading()

    def _resume_socket(self) -> None:
        if self._holds or not self._paused_here:
            return
        self._paused_here = False
        if self._socket is not None and not self._paused_above and not self._socket.is_closing():
            self._socket.resume_reading()

    def _send(self) -> None:
        if self._holds or self._sending_later or self._socket is None:
            return
        now_ms = self._clock.monotonic_ms()
        while self._unsent and not self._socket_full:
            self._active_ms = now_ms
            if self._out is None:
                data = self._unsent.popleft()
                self._unsent_bytes -= len(data)
                self._socket.write(data)
                continue
            wait_ms = self._out.wait_ms(now_ms)
            if wait_ms > 0:
                self._sending_later = True
                self._scheduler.schedule_once(wait_ms, self._send_later)
                break
            self._send_piece(self._out, now_ms)
        if self._unsent_bytes <= LOW_WATER_BYTES:
            self._resume_writing_above()
        if self._closing and not self._unsent and self._socket is not None:
            self._socket.close()

    def _send_later(self) -> None:
        self._sending_later = False
        self._send()

    def _send_piece(self, limiter: RateLimiter, now_ms: float) -> None:
        data = self._unsent.popleft()
        piece, rest = data[: limiter.piece_bytes], data[limiter.piece_bytes :]
        if rest:
            self._unsent.appendleft(rest)
        self._unsent_bytes -= len(piece)
        limiter.moved(len(piece), now_ms)
        assert self._socket is not None
        self._socket.write(piece)

    def _pause_writing_above(self) -> None:
        if not self._writing_paused:
            self._writing_paused = True
            self.above.pause_writing()

    def _resume_writing_above(self) -> None:
        if self._writing_paused and not self._socket_full and not self.is_closing():
            self._writing_paused = False
            self.above.resume_writing()

    def _check_idle(self) -> None:
        if not self._idle_limits or self._socket is None or self.dropped:
            return
        idle_ms, on_dropped = min(self._idle_limits, key=itemgetter(0))
        left_ms = self._active_ms + idle_ms - self._clock.monotonic_ms()
        if left_ms <= 0:
            self.drop()
            on_dropped()
        else:
            self._scheduler.schedule_once(left_ms, self._check_idle)


def _slowest(rates: Iterable[float | None]) -> RateLimiter | None:
    limits = [rate for rate in rates if rate is not None]
    return RateLimiter(min(limits)) if limits else None
