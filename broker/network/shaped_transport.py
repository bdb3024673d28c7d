"""A transport under a connection that makes it slow, silent, or dead without a sign of it.

A fault rule puts it between the socket and the connection (or the connection's TLS); connections without such a rule
have none. It is a protocol to the socket and a transport to the layer above, as tls_transport.py is.

Each of these effects is independent of the others. Several rules may affect one transport: it is as slow as its lowest
limit, held until the last rule has released it, and dropped by the first rule that drops it.

- *limited*: so many bytes a second in, and out. What comes is read in small pieces, and between them the socket is not
  read, so that TCP pushes the client back. What goes waits here, and whoever is above is told to pause as by a socket
  whose client does not read.
- *held*: nothing is handled and nothing sent until it is released; then all that waited goes on. That is what a client
  sees of a process that is stopped, or of a listener that accepts and then hangs. A little is read, so that a client
  that leaves is noticed.
- *dropped*: what comes is thrown away, and what goes, too. No end is told: this is the connection of which a middle box
  has forgotten that it was there. It stays so. Different from one: the client's kernel gets its bytes acknowledged, and
  if the client closes, so does the broker.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from operator import itemgetter
from socket import SO_LINGER, SOL_SOCKET
from struct import pack
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from .connection import Connection

if TYPE_CHECKING:
    from .services import NetworkHost
    from .tls_transport import TlsTransport

# A limited transport moves what this time allows at once: to a client that is as good as steady.
PIECE_MS = 10
# How much of lost time a limited transport makes good: timers are late, and what they lose would be rate.
_CATCH_UP_MS = 50
# What waits to be sent, above and below which the one above pauses and goes on: asyncio's own limits.
HIGH_WATER_BYTES = 64 * 1024
LOW_WATER_BYTES = 16 * 1024
# What a transport reads that is held, or, at once, one that is dropped.
_READ_AHEAD_BYTES = 64 * 1024
# Ends a connection with RST: what is unsent is thrown away, and nothing lingers.
_NO_LINGER = pack("ii", 1, 0)


@runtime_checkable
class SetsOptions(Protocol):
    """A socket of the kernel's; those of tests are none."""

    def setsockopt(self, level: int, name: int, value: bytes) -> None: ...


def shape_transport(connection: Connection, broker: "NetworkHost") -> "ShapedTransport | None":
    """Return the shaped transport under a connection, added if missing; None if the connection has ended."""
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
    """The limit on bytes per second in one direction."""

    __slots__ = ("_free_ms", "bytes_per_s", "piece_bytes")

    def __init__(self, bytes_per_s: float) -> None:
        self.bytes_per_s = bytes_per_s
        self.piece_bytes = max(1, int(bytes_per_s * PIECE_MS / 1e3))
        self._free_ms = 0.0  # from when on the next byte may go

    def wait_ms(self, now_ms: float) -> float:
        """How long until the next piece may go; 0: now."""
        return max(0.0, self._free_ms - now_ms)

    def moved(self, count: int, now_ms: float) -> None:
        """So many bytes went."""
        self._free_ms = max(self._free_ms, now_ms - _CATCH_UP_MS) + count * 1e3 / self.bytes_per_s


_Limit = tuple[float | None, float | None]  # bytes per second in, and out
_IdleLimit = tuple[float, Callable[[], object]]  # for how long (ms), and whom to tell


class ShapedTransport(asyncio.BufferedProtocol, asyncio.Transport):
    """The shaped transport of one connection."""

    def __init__(
        self,
        above: "Connection | TlsTransport",
        broker: "NetworkHost",
        made: "Callable[[ShapedTransport], object] | None" = None,
    ) -> None:
        """`made` decides what is done to a client that has just come, before `above` hears of it (`tell_made`); without
        it the transport is to be `put_under` a connection that is open.
        """
        super().__init__()
        self.above = above
        self._clock = broker.clock
        self._scheduler = broker.scheduler
        self._made = made
        self._socket: asyncio.Transport | None = None
        self._told_made = False
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self._limits: list[_Limit] = []
        self._in: RateLimiter | None = None
        self._out: RateLimiter | None = None
        self._paused_above = False
        self._paused_here = False
        self._told_full = False
        self._socket_full = False
        self._sending_later = False
        self._closing = False
        self._holds = 0
        self._came_while_held = bytearray()
        self._scratch = memoryview(b"")
        self._idle_limits: list[_IdleLimit] = []
        self._active_ms = broker.clock.monotonic_ms()
        self.on_read: list[Callable[[], None]] = []  # called after what came was handled
        self.on_lost: list[Callable[[], object]] = []  # called when the connection has ended
        self.dropped = False

    # -- what a fault does to it ---------------------------------------------------------------------------------------

    def put_under(self, below: asyncio.Transport) -> None:
        """Takes its place under a connection that is open."""
        self._told_made = True
        self._socket = below
        self.above.set_transport(self)
        below.set_protocol(self)

    def limit(self, in_bytes_per_s: float | None, out_bytes_per_s: float | None) -> Callable[[], None]:
        """Bytes per second from the client, and to it (None: as fast as they go), until what is returned is called."""
        limit = in_bytes_per_s, out_bytes_per_s
        self._limits.append(limit)
        self._pace()
        return partial(self._limit_no_more, limit)

    def hold(self) -> None:
        """Nothing is handled and nothing sent until `release`, which is to be called as often."""
        self._holds += 1
        self._scratch = memoryview(bytearray(_READ_AHEAD_BYTES))

    def release(self) -> None:
        """Goes on with all that waited."""
        self._holds -= 1
        if not self._holds:
            self.tell_made()
            self._feed()
            self._send()

    def drop_when_idle(self, idle_ms: float, told: Callable[[], object]) -> Callable[[], None]:
        """Is dropped as soon as nothing came or went for so long, which `told` is told; until what is returned is
        called, if it is not dropped by then.
        """
        limit = idle_ms, told
        self._idle_limits.append(limit)
        self._look_at_idle()
        return partial(self._idle_limits.remove, limit)

    def drop(self) -> None:
        """From now on whatever comes or goes is lost."""
        self.dropped = True
        self._scratch = memoryview(bytearray(_READ_AHEAD_BYTES))
        self._came_while_held.clear()
        self._unsent.clear()
        self._unsent_bytes = 0
        self._tell_room()
        if self._socket is not None and not self._socket.is_closing():
            self._socket.resume_reading()

    def reset(self) -> None:
        """Ends the connection with RST."""
        socket = self.get_extra_info("socket")
        if isinstance(socket, SetsOptions):
            socket.setsockopt(SOL_SOCKET, SO_LINGER, _NO_LINGER)
        self.abort()

    def tell_made(self) -> None:
        """Tells the one above that the client has come, if it does not know."""
        if not self._told_made:
            self._told_made = True
            self.above.connection_made(self)

    # -- what asyncio calls, of the socket -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport
        if self._made is not None:
            self._made(self)
        if not self._holds:
            self.tell_made()

    def connection_lost(self, exc: Exception | None) -> None:
        self.tell_made()  # held until now: it has come, and is gone
        self._socket = None
        self._unsent.clear()
        self._came_while_held.clear()
        self.above.connection_lost(exc)
        for lost in self.on_lost:
            lost()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self.dropped or self._keeps:
            return self._scratch
        buffer = self.above.get_buffer(sizehint)
        return buffer if self._in is None else buffer[: self._in.piece_bytes]

    def buffer_updated(self, nbytes: int) -> None:
        if self.dropped:
            return
        self._active_ms = now_ms = self._clock.monotonic_ms()
        if self._keeps:
            self._came_while_held += self._scratch[:nbytes]
            if len(self._came_while_held) >= _READ_AHEAD_BYTES:
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
                self._scheduler.schedule_once(wait_ms, self._read_on)

    def eof_received(self) -> bool:
        if self._keeps:
            return False  # it has not waited for its answers
        if self.above.eof_received():
            return True
        self._closing = bool(self._unsent)
        return self._closing

    def pause_writing(self) -> None:
        self._socket_full = True
        self._tell_full()

    def resume_writing(self) -> None:
        self._socket_full = False
        self._told_full = True  # by the socket, if this was not there yet
        self._send()
        self._tell_room()

    # -- what the one above calls, as of a transport -------------------------------------------------------------------

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
        if self._came_while_held:
            self._scheduler.schedule_once(0, self._feed)  # whoever reads on is in the middle of something
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
            self._tell_full()

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

    # -- within --------------------------------------------------------------------------------------------------------

    @property
    def _keeps(self) -> bool:
        """Whether what comes is kept here: while it is held, and until all is handed on that came then."""
        return self._holds > 0 or bool(self._came_while_held)

    def _feed(self) -> None:
        """Hands on what came while it was held, as far as it is wanted now."""
        kept = self._came_while_held
        while kept and not (self._holds or self._paused_above or self._socket is None):
            buffer = self.above.get_buffer(-1)
            count = min(len(buffer), len(kept))
            buffer[:count] = kept[:count]
            del kept[:count]
            self.above.buffer_updated(count)
        if not kept:
            self._read_on()

    def _limit_no_more(self, limit: _Limit) -> None:
        self._limits.remove(limit)
        self._pace()

    def _pace(self) -> None:
        """Puts the limits in force that there are by now."""
        ins, outs = zip(*self._limits, strict=True) if self._limits else ((), ())
        self._in, self._out = _slowest(ins), _slowest(outs)
        self._sending_later = False  # who waits for a moment of the pace before finds nothing to do
        self._read_on()
        self._send()

    def _pause_here(self) -> None:
        self._paused_here = True
        if self._socket is not None:
            self._socket.pause_reading()

    def _read_on(self) -> None:
        if self._holds or not self._paused_here:
            return
        self._paused_here = False
        if self._socket is not None and not self._paused_above and not self._socket.is_closing():
            self._socket.resume_reading()

    def _send(self) -> None:
        """Sends what may be sent now, and comes back for the rest."""
        if self._holds or self._sending_later or self._socket is None:
            return
        now_ms = self._clock.monotonic_ms()
        while self._unsent and not self._socket_full:
            self._active_ms = now_ms
            if self._out is None:
                parts, self._unsent, self._unsent_bytes = list(self._unsent), deque(), 0
                self._socket.writelines(parts)
                break
            wait_ms = self._out.wait_ms(now_ms)
            if wait_ms > 0:
                self._sending_later = True
                self._scheduler.schedule_once(wait_ms, self._send_later)
                break
            self._send_piece(self._out, now_ms)
        if self._unsent_bytes <= LOW_WATER_BYTES:
            self._tell_room()
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

    def _tell_full(self) -> None:
        if not self._told_full:
            self._told_full = True
            self.above.pause_writing()

    def _tell_room(self) -> None:
        if self._told_full and not self._socket_full and not self.is_closing():
            self._told_full = False
            self.above.resume_writing()

    def _look_at_idle(self) -> None:
        if not self._idle_limits or self._socket is None or self.dropped:
            return
        idle_ms, told = min(self._idle_limits, key=itemgetter(0))
        left_ms = self._active_ms + idle_ms - self._clock.monotonic_ms()
        if left_ms <= 0:
            self.drop()
            told()
        else:
            self._scheduler.schedule_once(left_ms, self._look_at_idle)


def _slowest(rates: Iterable[float | None]) -> RateLimiter | None:
    limits = [rate for rate in rates if rate is not None]
    return RateLimiter(min(limits)) if limits else None
