"""One client connection: bytes in, responses out in order, reading paused while a request waits.

Follows Kafka's SocketServer: one request in flight; the next is handled after the previous response and its throttle
time. Different on purpose: while a request is parked, a few bytes are read ahead, to notice that the client
disconnected; Kafka notices at the next read.

States: *running* and *waiting* (a request is parked or the connection is muted; frames stay in the buffer). `park`
leads from the first to the second, `resume` back.
"""

import asyncio
import logging
import socket
import sys
from collections.abc import Callable
from struct import Struct
from typing import Protocol

from sluice.broker.requests.channel import Channel
from sluice.broker.requests.context import RequestContext, RequestHandler
from sluice.broker.requests.trace import ReadTimes
from sluice.broker.requests.turn_queue import TURN_MS, TurnQueue
from sluice.config.broker_config import EVERYWHERE, Endpoint
from sluice.errors import RemoteProtocolError
from sluice.protocol.frame import PARKED_READ_BYTES, SCRATCH_BYTES, FrameReader, FrameSizeError

log = logging.getLogger("sluice.broker")

# Responses up to this size are joined and written by one send; larger ones are written by reference, part by part.
JOIN_BYTES = 64 * 1024
# Responses are written once they reach this size: then the transport reports whether the client keeps up.
FLUSH_BYTES = 256 * 1024
_NO_LINGER = Struct("ii").pack(1, 0)  # makes close() send RST
# Until 3.12, asyncio's writelines joins its arguments into one copy.
_WRITES_BY_REFERENCE = sys.version_info >= (3, 12)


class ConnectionDispatcher(RequestHandler, Protocol):
    def context(self, connection: Channel) -> RequestContext:
        """Return the context of a new connection's requests."""


class Connection(asyncio.BufferedProtocol):
    """The asyncio protocol of one accepted connection."""

    __slots__ = (
        "_cancel_wait",
        "_deferred",
        "_dispatcher",
        "_eof",
        "_on_lost",
        "_on_made",
        "_out",
        "_out_bytes",
        "_reader",
        "_running",
        "_transport",
        "_turns",
        "_write_paused",
        "advertised",
        "close_reason",
        "closed",
        "ctx",
        "ended_by_client",
        "last_active_ms",
        "number",
        "opened_ms",
        "peer",
        "read_ms",
        "read_times",
        "waiting",
    )

    def __init__(
        self,
        dispatcher: "ConnectionDispatcher",
        reader: FrameReader,
        advertised: Endpoint,
        turns: TurnQueue,
        on_made: "Callable[[Connection], None]",
        on_lost: "Callable[[Connection], None]",
    ) -> None:
        """Create the state; `advertised` is the address in metadata."""
        self._dispatcher: RequestHandler = dispatcher
        self._reader = reader
        self._turns = turns
        self.advertised = advertised
        self._on_made = on_made
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes | memoryview] = []
        self._out_bytes = 0
        self._running = False
        self._write_paused = False
        self._eof = False
        self._deferred = False
        self._cancel_wait: Callable[[], object] | None = None
        self.waiting = False
        self.closed = False
        self.peer = "?"
        self.opened_ms = self.last_active_ms = self.read_ms = dispatcher.clock.monotonic_ms()
        # For the journal: the connection's number, why the broker closed it, whether the client closed it, and where
        # the time at which the buffered responses leave is recorded.
        self.number = 0
        self.close_reason = ""
        self.ended_by_client = False
        self.read_times: ReadTimes | None = None
        self.ctx = dispatcher.context(self)

    # -- called by asyncio -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        if peer:
            self.peer = f"{peer[0]}:{peer[1]}"
        if self.advertised.host in EVERYWHERE:  # a wildcard: advertise the address that the client used
            here = transport.get_extra_info("sockname")
            self.advertised = Endpoint(self.advertised.name, here[0], self.advertised.port)
        self._on_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended_by_client = self._eof or not self.closed
        self.closed = True
        self._transport = None
        if self._cancel_wait is not None:
            cancel, self._cancel_wait = self._cancel_wait, None
            cancel()
        self._reader.close()
        self._out.clear()
        self._on_lost(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer(PARKED_READ_BYTES if self.waiting else SCRATCH_BYTES)

    def buffer_updated(self, nbytes: int) -> None:
        complete = self._reader.received(nbytes)
        if self.waiting or self._write_paused:
            self.read_ms = self._dispatcher.clock.monotonic_ms()
            self._reader.keep_rest()
            self._pause_reading()
        elif complete:
            self.read_ms = self.last_active_ms = self._dispatcher.begin_read(self.ctx)
            self._run()
        else:
            self.last_active_ms = self._dispatcher.clock.monotonic_ms()

    def eof_received(self) -> bool:
        # As in Kafka, requests sent before the end are still served: stay open while any of them waits.
        self._eof = True
        return self.waiting or self._write_paused or self._deferred

    def pause_writing(self) -> None:
        # The client does not read its responses: handle no more of its requests until it does.
        self._write_paused = True
        self._pause_reading()

    def resume_writing(self) -> None:
        self._write_paused = False
        if not self.waiting:
            self._continue()

    # -- called by the listener's security layers --------------------------------------------------------------------

    def set_request_handler(self, handler: RequestHandler) -> None:
        self._dispatcher = handler

    def limit_frames(self, max_bytes: int, name: str) -> None:
        """Reject larger requests; `name` is the property that sets the limit."""
        self._reader.limit(max_bytes, name)

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport: a socket, TLS, or one that a fault rule inserted; None after the connection has ended."""
        return self._transport

    def set_transport(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    # -- called by the dispatcher ------------------------------------------------------------------------------------

    def park(self, cancel: Callable[[], object]) -> None:
        """Handle no further request until `resume`; call `cancel` if the client disconnects before."""
        self.waiting = True
        self._cancel_wait = cancel

    def is_parked_by(self, cancel: Callable[[], object]) -> bool:
        return self.waiting and self._cancel_wait == cancel

    def mute(self) -> None:
        """Stop reading at once; the client's data stays in the kernel's buffers, so TCP pushes back (KIP-219)."""
        self._pause_reading()

    def send(self, head: bytes, body: list[bytes | memoryview], size: int) -> None:
        """Queue one response; it leaves with the others of this iteration, or at once."""
        self._out.append(head)
        self._out += body
        self._out_bytes += size
        if not self._running or self._out_bytes >= FLUSH_BYTES:
            self._flush()

    def resume(self) -> None:
        self.waiting = False
        self._cancel_wait = None
        if not self._running and not self.closed:
            self.last_active_ms = self._dispatcher.clock.monotonic_ms()
            self._continue()

    def close(self, reason: str) -> None:
        """Abort, and log `reason` in one line."""
        if self.closed:
            return
        log.warning(
            "connection closed",
            extra={
                "peer": self.peer,
                "client_id": self.ctx.session.client_id,
                "api": self.ctx.api,
                "reason": reason,
            },
        )
        self.close_reason = reason
        self.abort()

    def fail(self) -> None:
        """Close after an internal error, from its exception handler; other connections continue."""
        extra = {"peer": self.peer, "client_id": self.ctx.session.client_id, "api": self.ctx.api}
        log.exception("request failed", extra=extra)
        self.close_reason = "internal error while handling a request"
        self.abort()

    def abort(self) -> None:
        """Flush the responses, discard unhandled requests, and close without a log line."""
        self.closed = True
        self._reader.drop_rest()
        if self._transport is not None:
            self._flush()
            if self._write_paused:
                self._transport.abort()  # close() would wait for a client that does not read
            else:
                self._transport.close()

    def reset(self, reason: str) -> None:
        """Close with RST: the client gets an error at once and loses what it has not read."""
        if self.closed:
            return
        self.close_reason = reason
        self._reader.drop_rest()
        if self._transport is not None:
            self._flush()
            sock = self._transport.get_extra_info("socket")
            if sock is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.cut()

    def cut(self) -> None:
        """Close at once and discard unsent responses."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    # -- the loop over frames ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        reader, dispatcher = self._reader, self._dispatcher
        self._running = True
        ctx, view = self.ctx, reader.view
        spent = False
        end_ms = self.last_active_ms + TURN_MS
        try:
            while not (self.waiting or self._write_paused) and reader.next_frame():
                dispatcher.dispatch(ctx, view, reader.start, reader.end)
                if not reader.has_rest:
                    break
                if dispatcher.clock.monotonic_ms() >= end_ms:
                    spent = True
                    break
        except RemoteProtocolError as error:
            if isinstance(error, FrameSizeError):
                self.ctx.api = ""  # do not blame the previous request
            self.close(str(error))
        except Exception:
            self.fail()
        finally:
            self._running = False
        if self.closed:
            dispatcher.end_read()
            return
        if self._out:
            self._flush()
        if not reader.keep_rest():
            self._pause_reading()
            reader.wait_for_room(self._retry_reservation)
        elif spent:
            self._pause_reading()
            self._deferred = True
            self._turns.add(self._continue)
        dispatcher.end_read()

    def _continue(self) -> None:
        self._deferred = False
        if self._is_held():
            return
        if self._reader.has_rest:
            self.last_active_ms = self._dispatcher.begin_read(self.ctx)
            self._run()
            if self._is_held():
                return
        if self._eof:
            self.abort()
        elif self._transport is not None and self._reader.retry_reservation():
            self._transport.resume_reading()

    def _is_held(self) -> bool:
        return self.closed or self.waiting or self._write_paused or self._deferred

    def _retry_reservation(self) -> None:
        if not self.closed:
            if self._reader.retry_reservation():
                self._continue()
            else:
                self._reader.wait_for_room(self._retry_reservation)

    def _pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    def _flush(self) -> None:
        out, size = self._out, self._out_bytes
        self._out, self._out_bytes = [], 0
        if not out or self._transport is None:
            return
        if self.read_times is not None:
            self.read_times[-1] = self._dispatcher.clock.monotonic_ms()
            self.read_times = None
        if size <= JOIN_BYTES:
            self._transport.write(b"".join(out))
        elif _WRITES_BY_REFERENCE:
            self._transport.writelines(out)
        else:
            for part in _join_small(out):
                self._transport.write(part)


def _join_small(parts: list[bytes | memoryview]) -> list[bytes | memoryview]:
    joined: list[bytes | memoryview] = []
    small: list[bytes | memoryview] = []
    for part in parts:
        if len(part) <= JOIN_BYTES:
            small.append(part)
            continue
        if small:
            joined.append(b"".join(small))
            small = []
        joined.append(part)
    if small:
        joined.append(b"".join(small))
    return joined
