"""TLS between a TCP connection and the Connection that serves it: to the one a protocol, to the other a transport.

Theory of operation
-------------------
An `ssl.SSLObject` works on two buffers of bytes, so nothing here waits. What comes is put into the one, and decrypted
straight into the Connection's buffer for as long as that reads; what it sends is encrypted piece by piece for as long
as the socket takes it, the rest stays where it is, by reference. So all that a plain connection does works as it does
there: muting (no more is read from the socket, the client is pushed back by TCP), a client that does not read, half-
close in either way (TCP's, or TLS's own close_notify), idle close, abort.

    HANDSHAKE --done--> OPEN --close()--> CLOSING --all is sent--> CLOSED
        \\-- it fails, time is up, abort, the client leaves, from anywhere --> CLOSED

Not asyncio's own TLS, because of what it does when a handshake fails: it drops the alert that would have told the
client why (so a client with an expired certificate sees a connection that ends, where Kafka's tells it), and it tells
nobody here. It cannot half-close either. Follows Kafka's SslTransportLayer: the peer's close_notify is not waited for.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from typing import cast

from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory

from .connection import Connection
from .tls_failure import failure_of

log = logging.getLogger("sluice.broker")

# A client that has not finished its handshake by then never will; Kafka has no bound but connections.max.idle.ms.
HANDSHAKE_TIMEOUT_MS = 10_000
# One read from the socket, shared by all connections of a listener: what came is decrypted before another one reads.
_READ_BYTES = 256 * 1024
# What is encrypted before it is handed to the socket: enough to keep that busy, little to hold twice.
_WRITE_BYTES = 256 * 1024
# A TLS record carries this much at most, and one read gives no more than one record.
_RECORD_BYTES = 16 * 1024
_HANDSHAKE_RECORD = 22


class State(Enum):
    """Of the TLS session."""

    HANDSHAKE = "handshake"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


class TlsAcceptor:
    """What the TLS connections of one listener share: the context, and whom to tell about failures."""

    def __init__(
        self,
        context: ssl.SSLContext,
        purgatory: DelayedOperationPurgatory,
        call_soon: Callable[[Callable[[], None]], object],
        accepted: "Callable[[TlsTransport], Connection | None]",
        failed: Callable[[str, str], None],
    ) -> None:
        """`accepted` gets what has finished its handshake and returns who serves it, or None to have it closed;
        `failed` gets the peer and the reason.
        """
        self.context = context
        self.purgatory = purgatory
        self.call_soon = call_soon
        self.accepted = accepted
        self.failed = failed
        self.scratch = memoryview(bytearray(_READ_BYTES))
        self.shaking: set[TlsTransport] = set()  # in their handshakes

    def close(self) -> None:
        """Cuts the connections that have not come as far as a Connection."""
        for layer in list(self.shaking):
            layer.abort()


class _HandshakeTimeout(DelayedOperation):
    __slots__ = ("_layer",)

    def __init__(self, layer: "TlsTransport") -> None:
        super().__init__(HANDSHAKE_TIMEOUT_MS)
        self._layer = layer

    def on_complete(self) -> None:
        pass

    def on_expiration(self) -> None:
        self._layer.handshake_timed_out()


class TlsTransport(asyncio.BufferedProtocol, asyncio.Transport):
    """One connection's TLS."""

    def __init__(self, acceptor: TlsAcceptor, connect: Callable[[], Connection]) -> None:
        """`connect` makes the Connection, for whoever lets the client in."""
        super().__init__()
        self.connect = connect
        self._acceptor = acceptor
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = acceptor.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._state = State.HANDSHAKE
        self._socket: asyncio.Transport | None = None
        self.connection: Connection | None = None  # once the client is let in
        self._timeout = _HandshakeTimeout(self)
        self._first_byte: int | None = None
        self._reading = True
        self._scheduled = False
        self._socket_full = False
        self._unsent: deque[memoryview] = deque()
        self._socket_ended = False
        self._eof_told = False
        self.peer = "?"

    @property
    def certificate(self) -> bytes | None:
        """The client's certificate (DER), if it has shown one."""
        return self._ssl.getpeercert(binary_form=True)

    @property
    def transport(self) -> asyncio.Transport | None:
        """The socket, or a transport that a fault rule put above it; None: it has ended."""
        return self._socket

    def set_transport(self, transport: asyncio.Transport) -> None:
        """Send and receive through `transport` from now on."""
        self._socket = transport

    # -- what asyncio calls, of the socket ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport
        peer = transport.get_extra_info("peername")
        if peer:
            self.peer = f"{peer[0]}:{peer[1]}"
        self._acceptor.shaking.add(self)
        self._acceptor.purgatory.delay(self._timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._state is State.HANDSHAKE and self._first_byte is not None:
            self._acceptor.failed(
                self.peer, "the client left before the end of the handshake, as one does without trust"
            )
        self._end_handshake()
        self._state = State.CLOSED
        self._socket = None
        self._unsent.clear()
        if self.connection is not None:
            self.connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._acceptor.scratch

    def buffer_updated(self, nbytes: int) -> None:
        if self._first_byte is None:
            self._first_byte = self._acceptor.scratch[0]
        self._incoming.write(self._acceptor.scratch[:nbytes])
        if self._state is State.HANDSHAKE:
            self._shake_hands()
        self._read()

    def eof_received(self) -> bool:
        # Without close_notify: taken as it is of a socket of plain text, behind all that came before. Who does not read
        # finds it when it reads on.
        if self._state is not State.OPEN:
            return False
        self._socket_ended = True
        self._read()
        return not self.is_closing()

    def pause_writing(self) -> None:
        self._socket_full = True
        if self.connection is not None:
            self.connection.pause_writing()

    def resume_writing(self) -> None:
        self._socket_full = False
        self._send_rest()
        if not self._socket_full and self.connection is not None and self._state is State.OPEN:
            self.connection.resume_writing()

    # -- what the Connection calls, as of a transport ----------------------------------------------------------------

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default if self._socket is None else self._socket.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._state in (State.CLOSING, State.CLOSED)

    def pause_reading(self) -> None:
        self._reading = False
        if self._socket is not None:
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        if self._reading or self._state is not State.OPEN or self._socket is None:
            return
        self._reading = True
        self._socket.resume_reading()
        self._read_soon()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self._unsent.extend(memoryview(data) for data in list_of_data if len(data))
        if not self._socket_full and self._state is State.OPEN:
            self._send_rest()

    def close(self) -> None:
        if self._state is State.OPEN:
            self._state = State.CLOSING
            if not self._socket_full:
                self._send_rest()
        elif self._state is State.HANDSHAKE:
            self.abort()

    def abort(self) -> None:
        self._end_handshake()
        self._state = State.CLOSED
        if self._socket is not None:
            self._socket.abort()

    # -- the handshake -----------------------------------------------------------------------------------------------

    def handshake_timed_out(self) -> None:
        """The client took too long; it is gone afterwards."""
        self._fail(f"the handshake took longer than {HANDSHAKE_TIMEOUT_MS // 1000} s")

    def _shake_hands(self) -> None:
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            self._send_outgoing()
            return
        except ssl.SSLError as error:
            # What OpenSSL wants to tell the client goes out first.
            self._fail(failure_of(error, is_tls=self._first_byte == _HANDSHAKE_RECORD))
            return
        self._send_outgoing()
        self._end_handshake()
        self._state = State.OPEN
        self.connection = self._acceptor.accepted(self)
        if self.connection is None:
            self.close()
        else:
            self.connection.connection_made(self)

    def _fail(self, reason: str) -> None:
        self._acceptor.failed(self.peer, reason)
        self._end_handshake()
        self._state = State.CLOSED
        self._send_outgoing()
        if self._socket is not None:
            self._socket.close()

    def _end_handshake(self) -> None:
        self._acceptor.shaking.discard(self)
        self._timeout.force_complete()

    # -- reading -----------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        connection = self.connection
        while connection is not None and self._may_read():
            buffer = connection.get_buffer(-1)
            filled, ended = self._decrypt_into(buffer)
            if filled:
                connection.buffer_updated(filled)
            if ended:
                if self._state is State.OPEN and not self._tell_eof():
                    self.close()
                return
            if filled < len(buffer):
                return

    def _may_read(self) -> bool:
        return self._reading and self._state is State.OPEN and not self._eof_told

    def _decrypt_into(self, buffer: memoryview) -> tuple[int, bool]:
        """How many bytes there were, up to the size of the buffer, and whether no more will come."""
        filled = 0
        try:
            while filled < len(buffer):
                # A view will do for the buffer, and with one it is the number of bytes that comes.
                count = cast("int", self._ssl.read(len(buffer) - filled, buffer[filled:]))
                if not count:
                    return filled, True
                filled += count
        except ssl.SSLWantReadError:
            self._send_outgoing()  # an answer of TLS itself, to a new key say
            return filled, self._socket_ended
        except ssl.SSLZeroReturnError:
            return filled, True
        except ssl.SSLError as error:
            self._send_outgoing()
            assert self.connection is not None
            self.connection.close(f"TLS failed: {failure_of(error, is_tls=True)}")
            return 0, False  # nothing of it is looked at any more
        return filled, False

    def _tell_eof(self) -> bool:
        assert self.connection is not None
        self._eof_told = True
        return bool(self.connection.eof_received())

    def _read_soon(self) -> None:
        # Whoever reads on is in the middle of something.
        if not self._scheduled:
            self._scheduled = True
            self._acceptor.call_soon(self._read_scheduled)

    def _read_scheduled(self) -> None:
        self._scheduled = False
        self._read()

    # -- writing -----------------------------------------------------------------------------------------------------

    def _send_rest(self) -> None:
        """Encrypts and sends until all is sent, or the socket takes no more."""
        while self._unsent and not self._socket_full:
            while self._unsent and self._outgoing.pending < _WRITE_BYTES:
                data = self._unsent.popleft()
                try:
                    count = self._ssl.write(data[:_RECORD_BYTES])
                except ssl.SSLError:  # the session has failed, which reading has told or will tell
                    self.abort()
                    return
                if count < len(data):
                    self._unsent.appendleft(data[count:])
            self._send_outgoing()
        if self._state is State.CLOSING and not self._unsent:
            self._say_goodbye()

    def _say_goodbye(self) -> None:
        with suppress(ssl.SSLError):  # the peer has not said the same: nobody waits for that
            self._ssl.unwrap()
        self._state = State.CLOSED
        self._send_outgoing()
        if self._socket is not None:
            self._socket.close()

    def _send_outgoing(self) -> None:
        if self._outgoing.pending and self._socket is not None and not self._socket.is_closing():
            self._socket.write(self._outgoing.read())
