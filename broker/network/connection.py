"""One client connection: bytes in, responses out in order, reading paused while a request waits.

Follows Kafka's SocketServer: the next request is handled after the previous response and its throttle time. Different
on purpose:

- While a request is parked, a few bytes are read ahead, to notice that the client disconnected; Kafka notices at the
  next read.
- A response that fits into the transport's buffer (64 KiB) counts as sent; Kafka waits until the kernel has it.

Larger responses wait here, by reference; the transport gets them in pieces, so that it copies little.

`connection_states.py` has the states of a connection, and what each event does in each of them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from sluice.broker.exchange.exchange import Exchange
from sluice.broker.log.segment_memory import RetainedMemory
from sluice.broker.requests.context import RequestHandler
from sluice.broker.requests.route import NO_API
from sluice.broker.requests.trace import ReadTimes
from sluice.broker.requests.turn_queue import TURN_MS, TurnQueue
from sluice.config.broker_config import EVERYWHERE, Endpoint
from sluice.errors import RemoteProtocolError
from sluice.protocol.frame import PARKED_READ_BYTES, SCRATCH_BYTES, FrameReader, FrameSizeError

from .connection_states import FLOWING, FULL, HALF_CLOSED, OPEN, READY, UNANSWERED, UNSENT
from .socket_transport import reset_at_close
from .unsent_responses import JOIN_BYTES, UnsentResponses, memory_of, take_piece

log = logging.getLogger("sluice.broker")

# Pieces written at once: 4 MiB take about 1 ms, half of TURN_MS.
PIECES_AT_ONCE = 32
# Bytes read after a request that gets no response, to notice a disconnect.
_MOST_UNANSWERED_BYTES = 1 << 20


class Connection(asyncio.BufferedProtocol):
    __slots__ = (
        "_cancel_wait",
        "_ends",
        "_holds_frame",
        "_joins",
        "_on_frame",
        "_on_lost",
        "_on_made",
        "_out",
        "_out_bytes",
        "_output",
        "_reader",
        "_requests",
        "_running",
        "_turns",
        "_unsent",
        "_unsent_responses",
        "_written",
        "advertised",
        "close_reason",
        "ctx",
        "last_active_ms",
        "number",
        "on_sent",
        "opened_ms",
        "owed",
        "peer",
        "read_ms",
        "read_times",
        "request_handler",
        "request_memory",
        "sent_ahead",
        "started_ms",
        "transport",
    )

    def __init__(
        self,
        exchange: Exchange,
        reader: FrameReader,
        advertised: Endpoint,
        turns: TurnQueue,
        unsent_responses: UnsentResponses,
        on_made: "Callable[[Connection], None]",
        on_lost: "Callable[[Connection, Exception | None], None]",
    ) -> None:
        self.request_handler: RequestHandler = exchange
        self._reader = reader
        self.request_memory = reader.pool
        self._turns = turns
        self._unsent_responses = unsent_responses
        self.advertised = advertised
        self._on_made = on_made
        self._on_lost = on_lost
        # The socket, TLS, or a transport that a fault rule inserted; None after the end of the connection.
        self.transport: asyncio.Transport | None = None
        self._out: list[bytes | memoryview] = []
        self._out_bytes = 0
        self._running = False
        self._joins = False  # whether responses are joined until `_flush`
        self._unsent: deque[memoryview] = deque()
        self._written = 0  # identity of the last piece's memory, which the transport may reference
        self._requests = READY
        self._output = FLOWING
        self._ends = OPEN
        self._holds_frame = False
        self._cancel_wait: Callable[[], object] | None = None
        self._on_frame: Callable[[memoryview], object] | None = None
        self.owed = 0
        self.sent_ahead = 0
        self.on_sent: Callable[[], None] | None = None
        self.peer = "?"
        self.opened_ms = self.last_active_ms = self.read_ms = self.started_ms = exchange.clock.monotonic_ms()
        # For the journal.
        self.number = 0
        self.close_reason = ""
        self.read_times: ReadTimes | None = None
        self.ctx = exchange.context(self)

    @property
    def waiting(self) -> bool:
        return self._requests.waits

    @property
    def closed(self) -> bool:
        return self._ends.is_closed

    @property
    def ended_by_client(self) -> bool:
        return self._ends.by_client

    @property
    def is_sending(self) -> bool:
        return self._output is not FLOWING

    # -- called by asyncio -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        peer = transport.get_extra_info("peername")
        if peer:
            self.peer = f"{peer[0]}:{peer[1]}"
        if self.advertised.host in EVERYWHERE:  # a wildcard: advertise the address that the client used
            here = transport.get_extra_info("sockname")
            self.advertised = Endpoint(self.advertised.name, here[0], self.advertised.port)
        self._on_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ends = self._ends.lose
        self.transport = None
        if self._cancel_wait is not None:
            cancel, self._cancel_wait = self._cancel_wait, None
            cancel()
        if not self._holds_frame:  # else `release_frame` closes the reader
            self._reader.close()
        self._out.clear()
        self._drop_unsent()
        self._on_lost(self, exc)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.get_buffer(PARKED_READ_BYTES) if self._requests.waits else self._reader.get_buffer()

    def buffer_updated(self, nbytes: int) -> None:
        complete = self._reader.received(nbytes)
        if self._requests.waits or self._output is not FLOWING:
            self.read_ms = self.request_handler.clock.monotonic_ms()
            keeps = self._reader.keep_rest()
            if not (keeps and self._requests is UNANSWERED and self._reader.rest_bytes < _MOST_UNANSWERED_BYTES):
                self._pause_reading()
            self._show_waiting_frame()
        elif complete:
            self.read_ms = self.last_active_ms = self.request_handler.begin_read(self.ctx)
            self._run()
        else:
            self.last_active_ms = self.request_handler.clock.monotonic_ms()

    def eof_received(self) -> bool:
        # As in Kafka, requests sent before the end are still served: stay open while any waits.
        self._ends = self._ends.half_close
        if self._requests is UNANSWERED:
            return False
        return self._requests is not READY or self._output is not FLOWING or self.owed > 0

    def pause_writing(self) -> None:
        # Handle no more requests of this client until it reads its responses.
        self._output = self._output.fill
        self._hold_output()

    def resume_writing(self) -> None:
        self._output = self._output.drain
        self.last_active_ms = self.request_handler.clock.monotonic_ms()
        self._send_more()

    # -- called by the listener's security layers --------------------------------------------------------------------

    def limit_frames(self, max_bytes: int, name: str) -> None:
        """Reject larger requests; `name` is the property that sets the limit."""
        self._reader.limit(max_bytes, name)

    @property
    def reserved_received(self) -> int:
        return self._reader.reserved_received

    # -- called by the exchange ------------------------------------------------------------------------------------

    def park(self, cancel: Callable[[], object], on_frame: Callable[[memoryview], object] | None = None) -> None:
        self._requests = self._requests.park
        self._cancel_wait = cancel
        self._on_frame = on_frame

    def _show_waiting_frame(self) -> None:
        on_frame = self._on_frame
        if on_frame is not None:
            frame = self._reader.waiting_frame()
            if frame is not None:
                on_frame(frame)

    def unpark(self) -> None:
        self._requests = self._requests.unpark
        self._on_frame = None

    def close_on_eof(self) -> None:
        self._requests = self._requests.never_answer
        if self._ends is HALF_CLOSED and self.transport is not None:
            self.transport.close()
        self._await_eof()

    def _await_eof(self) -> None:
        if self._requests is UNANSWERED and not self._holds_frame and self.transport is not None:
            self.transport.resume_reading()

    def mute(self, cancel: Callable[[], object]) -> None:
        self.park(cancel)
        self._pause_reading()

    def hold_frame(self) -> None:
        if self._reader.end - self._reader.start > SCRATCH_BYTES:
            self._holds_frame = True
            self._pause_reading()

    def release_frame(self) -> None:
        if self._holds_frame:
            self._holds_frame = False
            if self.closed:
                self._reader.close()
            # Without room for the next frame, `_continue` waits for it.
            elif self._reader.keep_rest() and self.transport is not None:
                self.transport.resume_reading()

    def send(self, head: bytes, body: list[bytes | memoryview], size: int) -> None:
        self._out.append(head)
        self._out += body
        self._out_bytes += size
        if not self._joins or self._out_bytes >= JOIN_BYTES:
            self._flush()

    def join_responses(self) -> None:
        self._joins = True

    def send_joined(self) -> None:
        self._joins = self._running
        if self._out and not self._joins:
            self._flush()

    def resume(self) -> None:
        self._requests = self._requests.unpark
        self._cancel_wait = None
        if not self._running and not self._ends.is_closed:
            self.last_active_ms = self.request_handler.clock.monotonic_ms()
            self._continue()

    def answered(self) -> None:
        if self._ends is HALF_CLOSED and self._requests is READY and self._output is FLOWING:
            self.abort()

    def close(self, reason: str) -> None:
        if self.closed:
            return
        log.warning("connection closed", extra=self._described() | {"reason": reason})
        self.close_reason = reason
        self.abort()

    def fail(self) -> None:
        log.exception("request failed", extra=self._described())
        self.close_reason = "internal error while handling a request"
        self.abort()

    def _described(self) -> dict[str, str]:
        return {"peer": self.peer, "client_id": self.ctx.session.client_id, "api": self.ctx.api}

    def abort(self) -> None:
        self._ends = self._ends.close
        self._reader.drop_rest()
        self._flush()
        if self._output is not FLOWING:
            self.cut()  # closing the transport would wait for a client that does not read
        elif self.transport is not None:
            self.transport.close()

    def reset(self, reason: str) -> None:
        if self.closed:
            return
        self.close_reason = reason
        self._reader.drop_rest()
        if self.transport is not None:
            self._flush()
            reset_at_close(self.transport)
        self.cut()

    def cut(self) -> None:
        self._ends = self._ends.close
        self._drop_unsent()
        if self.transport is not None:
            self.transport.abort()

    # -- the loop over frames ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        reader, exchange = self._reader, self.request_handler
        self._running = self._joins = True
        ctx, view = self.ctx, reader.view
        spent = False
        end_ms = self.last_active_ms + TURN_MS
        try:
            while not self._requests.waits and self._output is FLOWING and reader.next_frame():
                exchange.dispatch(ctx, view, reader.start, reader.end)
                if reader.end == reader.filled:  # faster than `has_rest`
                    break
                if exchange.clock.monotonic_ms() >= end_ms:
                    spent = True
                    break
            else:
                if self._on_frame is not None:
                    self._turns.add(self._show_waiting_frame)
        except RemoteProtocolError as error:
            if isinstance(error, FrameSizeError):
                self.ctx.route = NO_API  # do not blame the previous request
            self.close(str(error))
        except Exception:
            self.fail()
        finally:
            self._running = self._joins = False
        if self._ends.is_closed:
            exchange.end_read()
            return
        if self._out:
            self._flush()
        if self._holds_frame:
            spent = False
        elif not reader.keep_rest():
            self._pause_reading()
            reader.wait_for_room(self._retry_reservation)
            spent = False
        if spent:
            self._pause_reading()
            self._requests = self._requests.defer
            self._turns.add(self._continue)
        exchange.end_read()

    def _continue(self) -> None:
        self._requests = self._requests.turn
        if self._is_held():
            self._await_eof()
            return
        if self._reader.has_rest:
            self.last_active_ms = self.request_handler.begin_read(self.ctx)
            self._run()
            if self._is_held():
                return
        if self._ends is HALF_CLOSED:
            if not self.owed:
                self.abort()
        elif self.transport is not None and self._reader.retry_reservation():
            self.transport.resume_reading()

    def _is_held(self) -> bool:
        return self._requests is not READY or self._output is not FLOWING or self._ends.is_closed

    def _retry_reservation(self) -> None:
        if not self.closed:
            if self._reader.retry_reservation():
                self._continue()
            else:
                self._reader.wait_for_room(self._retry_reservation)

    def _pause_reading(self) -> None:
        if self.transport is not None:
            self.transport.pause_reading()

    def _flush(self) -> None:
        out, size = self._out, self._out_bytes
        self._out, self._out_bytes = [], 0
        if not out or self.transport is None:
            return
        if self.read_times is not None:
            self.read_times[-1] = self.request_handler.clock.monotonic_ms()
            self.read_times = None
        if size <= JOIN_BYTES and not self._unsent:
            self.transport.write(b"".join(out))
        elif self.sent_ahead:
            assert self.sent_ahead == size
            self.sent_ahead = 0
        else:
            self._unsent.extend(memoryview(part) for part in out if len(part))
            self._send_unsent()

    def _send_unsent(self) -> None:
        unsent = self._unsent
        for _ in range(PIECES_AT_ONCE):
            if self.transport is None or self._output is FULL or not unsent:
                break
            piece = take_piece(unsent)
            self._written = id(piece.obj) if isinstance(piece, memoryview) else 0
            self.transport.write(piece)
        else:
            if unsent and self._output is not FULL:
                self._turns.add(self._send_more)
        if unsent or self._output is FULL:
            self._output = self._output.left
            self._hold_output()
        elif self._output is UNSENT:
            self._output = self._output.sent
            self._unsent_responses.release(self)
            if self.on_sent is not None:
                self.on_sent()

    def _send_more(self) -> None:
        self._send_unsent()
        self._continue()

    def _hold_output(self) -> None:
        if self.transport is not None:
            self.transport.pause_reading()
            size = self.transport.get_write_buffer_size() + memory_of(self._unsent)
            self._unsent_responses.hold(self, size)

    def references(self, retained: RetainedMemory) -> bool:
        return self._written in retained or any(id(part.obj) in retained for part in self._unsent)

    def _drop_unsent(self) -> None:
        self._unsent.clear()
        self._unsent_responses.release(self)
