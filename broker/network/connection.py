"""One client's connection: bytes in, responses out in order, and no reading while something must wait.

Follows what Kafka's SocketServer does to a channel: one request in flight, the next is looked at when the one before
was answered and its throttle is over. Different on purpose: a connection whose request is parked still notices that
its client went away, since a few bytes may be read ahead; Kafka only notices when it reads again.

States: *running* (frames are handled as they come) and *waiting* (a request is parked, or the connection is muted:
frames stay where they are). `park` leads from the first to the second, `resume` back.
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
from sluice.config.broker_config import EVERYWHERE, Endpoint
from sluice.errors import RemoteProtocolError
from sluice.protocol.frame import PARKED_READ_BYTES, SCRATCH_BYTES, FrameReader, FrameSizeError

log = logging.getLogger("sluice.broker")

# Answers up to this size are joined and written by one send; larger ones go out by reference, part by part.
JOIN_BYTES = 64 * 1024
# A turn's answers are written before they are this large together: then the transport says whether the client keeps up.
FLUSH_BYTES = 256 * 1024
# Requests handled in one event-loop iteration, so that one pipelining client cannot keep timers and others waiting: at
# about 10 us a request this is 2.5 ms, half of what a throttle may be late.
TURN_REQUESTS = 256
_NO_LINGER = Struct("ii").pack(1, 0)  # to close is to reset
# Until 3.12, asyncio's writelines joins its arguments into one copy.
_WRITES_BY_REFERENCE = sys.version_info >= (3, 12)


class ConnectionDispatcher(RequestHandler, Protocol):
    """The dispatcher, which handles the requests of all connections."""

    def context(self, connection: Channel) -> RequestContext:
        """Return the context of a new connection's requests."""


class Connection(asyncio.BufferedProtocol):
    """An asyncio protocol; made by the server for each connection that is accepted."""

    __slots__ = (
        "_cancel_wait",
        "_defer",
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
        defer: Callable[[Callable[[], None]], object],
        on_made: "Callable[[Connection], None]",
        on_lost: "Callable[[Connection], None]",
    ) -> None:
        """`advertised` is what the client is told to connect to; `defer` runs a function in the loop's next turn."""
        self._dispatcher: RequestHandler = dispatcher
        self._reader = reader
        self._defer = defer
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
        # When it was made, and when bytes last came.
        self.opened_ms = self.last_active_ms = self.read_ms = dispatcher.clock.monotonic_ms()
        # For the journal: the connection's number there, why the broker closed it, whether the client did, and where it
        # is told when the answers leave that wait for it.
        self.number = 0
        self.close_reason = ""
        self.ended_by_client = False
        self.read_times: ReadTimes | None = None
        self.ctx = dispatcher.context(self)

    # -- what asyncio calls ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        if peer:
            self.peer = f"{peer[0]}:{peer[1]}"
        if self.advertised.host in EVERYWHERE:  # listening everywhere: the address the client came to
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
        # What was sent before the end is still served (reference 6.5): stay open while anything of it waits.
        self._eof = True
        return self.waiting or self._write_paused or self._deferred

    def pause_writing(self) -> None:
        # The client does not read its answers: handle no more of its requests until it does.
        self._write_paused = True
        self._pause_reading()

    def resume_writing(self) -> None:
        self._write_paused = False
        if not self.waiting:
            self._continue()

    # -- what its listener calls -------------------------------------------------------------------------------------

    def set_request_handler(self, handler: RequestHandler) -> None:
        """Pass requests to another handler, from the next read on."""
        self._dispatcher = handler

    def limit_frames(self, max_bytes: int, name: str) -> None:
        """Takes no larger requests; `name` is the property that says so."""
        self._reader.limit(max_bytes, name)

    @property
    def transport(self) -> asyncio.Transport | None:
        """By what its bytes go: the socket, TLS, or a line that a fault has put there; None: it has ended."""
        return self._transport

    def set_transport(self, transport: asyncio.Transport) -> None:
        """Send and receive through `transport` from now on."""
        self._transport = transport

    # -- what the dispatcher calls -----------------------------------------------------------------------------------

    def park(self, cancel: Callable[[], object]) -> None:
        """The request in flight waits: no further one is handled until `resume`. Should the client leave: `cancel`."""
        self.waiting = True
        self._cancel_wait = cancel

    def is_parked_by(self, cancel: Callable[[], object]) -> bool:
        """Whether what waits is what was last parked with this, and not something that came after it."""
        return self.waiting and self._cancel_wait == cancel

    def mute(self) -> None:
        """Stops reading at once: what the client sends stays in the kernel's buffers, so TCP pushes back (KIP-219)."""
        self._pause_reading()

    def send(self, head: bytes, body: list[bytes | memoryview], size: int) -> None:
        """Queues one whole response frame of `size` bytes; it leaves with the others of this turn, or at once."""
        self._out.append(head)
        self._out += body
        self._out_bytes += size
        if not self._running or self._out_bytes >= FLUSH_BYTES:
            self._flush()

    def resume(self) -> None:
        """What the request waited for is over: go on with the next."""
        self.waiting = False
        self._cancel_wait = None
        if not self._running and not self.closed:
            self.last_active_ms = self._dispatcher.clock.monotonic_ms()  # who waited was not idle
            self._continue()

    def close(self, reason: str) -> None:
        """Closes at once, without waiting for unsent answers, with one log line that says why."""
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
        """Closes after a mistake of ours, which is being handled: told in one line, it ends no other connection."""
        extra = {"peer": self.peer, "client_id": self.ctx.session.client_id, "api": self.ctx.api}
        log.exception("request failed", extra=extra)
        self.close_reason = "the request failed, by a mistake of the broker's"
        self.abort()

    def abort(self) -> None:
        """Closes at once and silently; what the client sent and was not looked at is not handled any more."""
        self.closed = True
        self._reader.drop_rest()
        if self._transport is not None:
            self._flush()
            if self._write_paused:
                self._transport.abort()  # it would never get to the end of what is buffered
            else:
                self._transport.close()

    def reset(self, reason: str) -> None:
        """Closes at once by a reset: the client learns of it (RST), and what it has not read yet is lost to it."""
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
        """Closes at once, whatever is still to be sent."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()

    # -- the loop over frames ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        reader, dispatcher = self._reader, self._dispatcher
        self._running = True
        ctx, view = self.ctx, reader.view
        spent = False
        try:
            for _ in range(TURN_REQUESTS):
                if self.waiting or self._write_paused or not reader.next_frame():
                    break
                dispatcher.dispatch(ctx, view, reader.start, reader.end)
            else:
                spent = True
        except RemoteProtocolError as error:
            if isinstance(error, FrameSizeError):
                self.ctx.api = ""  # the last request that was read is not to blame
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
            self._defer(self._continue)
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
    """The same bytes in as few parts as possible without copying a large one."""
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
