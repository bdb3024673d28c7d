r"""TLS between a socket and its Connection: a protocol to the socket, a transport to the Connection.

An `ssl.SSLObject` works on two memory buffers, so nothing blocks. Input is decrypted straight into the Connection's
buffer while that reads; output is encrypted piece by piece while the socket accepts it. So muting, slow clients,
half-close (TCP's, or TLS's close_notify), idle close and abort work as on a plain connection.

    HANDSHAKE --done--> OPEN --close()--> CLOSING --all sent--> CLOSED
        \-- from any state: failure, timeout, abort, or the client disconnects --> CLOSED

asyncio's own TLS cannot half-close, drops the alert of a failed handshake, and does not report the failure. As in
Kafka's SslTransportLayer, the peer's close_notify is not awaited.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import Enum
from typing import cast

from msgspec import Struct, field

from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory

from .connection import Connection

log = logging.getLogger("sluice.broker")

# In Kafka only connections.max.idle.ms limits a handshake.
HANDSHAKE_TIMEOUT_MS = 10_000
# One read; a listener's connections share the buffer.
_READ_BYTES = 256 * 1024
# Bytes per write to the socket: enough to keep it busy, few enough to hold twice.
_WRITE_BYTES = 256 * 1024
# The maximum content of a TLS record; one SSL read returns at most one record.
_RECORD_BYTES = 16 * 1024
# OpenSSL takes 30 us for a key update of 27 bytes. So it gets its input in slices, and after this many bytes without
# content the rest waits for the next event-loop iteration.
_SLICE_BYTES = 8 * 1024
_MOST_OVERHEAD_BYTES = _RECORD_BYTES + 4 * 1024
_HANDSHAKE_RECORD = 22
_NO_TRUST = "the client does not trust the broker's certificate"
_NO_CERTIFICATE = "the client sent no certificate (ssl.client.auth=required)"
_REASONS = {
    "NO_SHARED_CIPHER": "no cipher suite in common (ssl.cipher.suites)",
    "NO_SUITABLE_SIGNATURE_ALGORITHM": "no signature algorithm in common with the broker's certificate",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": _NO_CERTIFICATE,
    "SSLV3_ALERT_BAD_CERTIFICATE": _NO_TRUST,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": _NO_TRUST,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": _NO_TRUST,
    "TLSV1_ALERT_UNKNOWN_CA": _NO_TRUST,
    "UNSUPPORTED_PROTOCOL": "the client's TLS version is not enabled (ssl.enabled.protocols)",
    "VERSION_TOO_LOW": "the client's TLS version is not enabled (ssl.enabled.protocols)",
}


class State(Enum):
    HANDSHAKE = "handshake"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


class TlsAcceptor(Struct, eq=False):
    """The state that the transports of a listener share."""

    context: ssl.SSLContext
    purgatory: DelayedOperationPurgatory
    call_soon: Callable[[Callable[[], None]], object]
    # Gets a transport after its handshake; returns its Connection, or None to close it.
    accepted: "Callable[[TlsTransport], Connection | None]"
    failed: Callable[[str, str], None]  # gets peer and reason
    scratch: memoryview = field(default_factory=lambda: memoryview(bytearray(_READ_BYTES)))
    handshaking: "set[TlsTransport]" = field(default_factory=set)

    def close(self) -> None:
        for layer in list(self.handshaking):
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
    def __init__(self, acceptor: TlsAcceptor, connect: Callable[[], Connection]) -> None:
        super().__init__()
        self.connect = connect
        self._acceptor = acceptor
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = acceptor.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._state = State.HANDSHAKE
        self.transport: asyncio.Transport | None = None  # the socket, or what a fault rule inserted
        self.connection: Connection | None = None
        self._timeout = _HandshakeTimeout(self)
        self._first_byte: int | None = None
        self._reading = True
        self._scheduled = False
        self._input = b""  # not yet given to OpenSSL; the socket is not read meanwhile
        self._socket_full = False
        self._unsent: deque[memoryview] = deque()
        self._socket_ended = False
        self._eof_passed = False
        self.peer = "?"

    @property
    def certificate(self) -> bytes | None:
        return self._ssl.getpeercert(binary_form=True)

    # -- called by asyncio -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        peer = transport.get_extra_info("peername")
        if peer:
            self.peer = f"{peer[0]}:{peer[1]}"
        self._acceptor.handshaking.add(self)
        self._acceptor.purgatory.delay(self._timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._state is State.HANDSHAKE and self._first_byte is not None:
            self._acceptor.failed(
                self.peer, "the client disconnected during the handshake; it may not trust the broker's certificate"
            )
        self._end_handshake()
        self._state = State.CLOSED
        self.transport = None
        self._unsent.clear()
        if self.connection is not None:
            self.connection.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._acceptor.scratch

    def buffer_updated(self, nbytes: int) -> None:
        if self._first_byte is None:
            self._first_byte = self._acceptor.scratch[0]
        self._handle_input(self._acceptor.scratch[:nbytes])

    def eof_received(self) -> bool:
        # As on a plain connection, an end without close_notify is handled after all earlier input.
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

    # -- called by the Connection ------------------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default if self.transport is None else self.transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._state in (State.CLOSING, State.CLOSED)

    def pause_reading(self) -> None:
        self._reading = False
        if self.transport is not None:
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if self._reading or self._state is not State.OPEN or self.transport is None:
            return
        self._reading = True
        if not self._input:
            self.transport.resume_reading()
        self._read_soon()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writelines((data,))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self._unsent.extend(memoryview(data) for data in list_of_data if len(data))
        if not self._socket_full and self._state is State.OPEN:
            self._send_rest()

    def get_write_buffer_size(self) -> int:
        buffered = 0 if self.transport is None else self.transport.get_write_buffer_size()
        return buffered + sum(map(len, self._unsent))

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
        if self.transport is not None:
            self.transport.abort()

    # -- the handshake -----------------------------------------------------------------------------------------------

    def handshake_timed_out(self) -> None:
        self._fail(f"the handshake took longer than {HANDSHAKE_TIMEOUT_MS // 1000} s")

    def _do_handshake(self) -> None:
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            self._send_outgoing()
            return
        except ssl.SSLError as error:
            # _fail() sends OpenSSL's alert before it closes.
            self._fail(_failure_of(error, is_tls=self._first_byte == _HANDSHAKE_RECORD))
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
        if self.transport is not None:
            self.transport.close()

    def _end_handshake(self) -> None:
        self._acceptor.handshaking.discard(self)
        self._timeout.force_complete()

    # -- reading -----------------------------------------------------------------------------------------------------

    def _handle_input(self, data: memoryview) -> None:
        overhead = 0
        while True:
            piece, data = data[:_SLICE_BYTES], data[_SLICE_BYTES:]
            self._incoming.write(piece)
            if self._state is State.HANDSHAKE:
                self._do_handshake()
            overhead += len(piece) - self._read()
            if not data or self._state in (State.CLOSING, State.CLOSED):
                return
            if overhead > _MOST_OVERHEAD_BYTES or not (self._may_read() or self._state is State.HANDSHAKE):
                break
        self._input = bytes(data)
        if self.transport is not None:
            self.transport.pause_reading()
        if self._reading:
            self._read_soon()

    def _read(self) -> int:
        """Pass decrypted bytes to the connection while that reads; return their number."""
        connection = self.connection
        count = 0
        while connection is not None and self._may_read():
            buffer = connection.get_buffer(-1)
            room = len(buffer)
            filled, ended = self._decrypt_into(buffer)
            count += filled
            if filled:
                connection.buffer_updated(filled)
            if ended:
                if self._state is State.OPEN and not self._pass_eof():
                    self.close()
                break
            if filled < room:
                break
        return count

    def _may_read(self) -> bool:
        return self._reading and self._state is State.OPEN and not self._eof_passed

    def _decrypt_into(self, buffer: memoryview) -> tuple[int, bool]:
        filled = 0
        try:
            while filled < len(buffer):
                count = cast("int", self._ssl.read(len(buffer) - filled, buffer[filled:]))
                if not count:
                    return filled, True
                filled += count
        except ssl.SSLWantReadError:
            self._send_outgoing()  # a response of TLS itself, such as to a key update
            return filled, self._socket_ended
        except ssl.SSLZeroReturnError:
            return filled, True
        except ssl.SSLError as error:
            self._send_outgoing()
            assert self.connection is not None
            self.connection.close(f"TLS failed: {_failure_of(error, is_tls=True)}")
            return 0, False
        return filled, False

    def _pass_eof(self) -> bool:
        assert self.connection is not None
        self._eof_passed = True
        return bool(self.connection.eof_received())

    def _read_soon(self) -> None:
        # Not from within the caller's own loop.
        if not self._scheduled:
            self._scheduled = True
            self._acceptor.call_soon(self._read_scheduled)

    def _read_scheduled(self) -> None:
        self._scheduled = False
        data, self._input = self._input, b""
        self._handle_input(memoryview(data))
        if data and not self._input and self._reading and self.transport is not None:
            self.transport.resume_reading()

    # -- writing -----------------------------------------------------------------------------------------------------

    def _send_rest(self) -> None:
        while self._unsent and not self._socket_full:
            while self._unsent and self._outgoing.pending < _WRITE_BYTES:
                data = self._unsent.popleft()
                try:
                    count = self._ssl.write(data[:_RECORD_BYTES])
                except ssl.SSLError:  # the session has failed; reading reports it
                    self.abort()
                    return
                if count < len(data):
                    self._unsent.appendleft(data[count:])
            self._send_outgoing()
        if self._state is State.CLOSING and not self._unsent:
            self._send_close_notify()

    def _send_close_notify(self) -> None:
        with suppress(ssl.SSLError):  # the peer's close_notify is not awaited
            self._ssl.unwrap()
        self._state = State.CLOSED
        self._send_outgoing()
        if self.transport is not None:
            self.transport.close()

    def _send_outgoing(self) -> None:
        if self._outgoing.pending and self.transport is not None and not self.transport.is_closing():
            self.transport.write(self._outgoing.read())


def _failure_of(error: ssl.SSLError, *, is_tls: bool) -> str:
    """Return the reason for the log; `is_tls`: whether the client's first bytes were TLS."""
    if not is_tls:
        return "the client does not speak TLS; does it send plain text to a TLS port?"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate was rejected: {error.verify_message}"
    reason = error.reason or "unknown"
    words = _REASONS.get(reason)
    return f"{words}: {reason}" if words else reason
