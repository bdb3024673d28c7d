"""Size-prefixed frames out of a stream of bytes, sans-I/O: `get_buffer` -> `received` -> `next_frame` ... ->
`keep_rest`.

A frame is a signed 32-bit size and that many bytes. Whoever reads the socket writes into the buffer given by
`get_buffer`, says how much came, takes the frames that are whole, and then lets the reader keep what is left.

Theory of operation
-------------------
Reads land in one scratch buffer shared by all connections, so a connection between frames holds no memory. A frame
that a read did not finish moves to a buffer of the connection's own, taken from a pool. A size prefix is only a claim:
memory follows the bytes that really came (at most twice as much, or as much as the last frame on this connection
needed), and a frame too large for the scratch buffer must first reserve its whole size from a budget that all
connections share (`queued.max.request.bytes`). A frame that has its reservation can always be finished, so waiting
readers never wait for each other. A connection whose last frame was large reads the next one straight into a pooled
buffer: no copy.
"""

from collections.abc import Callable
from struct import Struct

from sluice.errors import RemoteProtocolError

# One recv asks for at most this much: a bulk producer needs 4 system calls for 1 MiB, a small request wastes nothing.
SCRATCH_BYTES = 256 * 1024
# What a waiting connection may still push at us before its reading is paused: enough to notice that it closed.
PARKED_READ_BYTES = 4 * 1024
# Buffers kept for reuse in all: eight frames of 1 MiB, which is what producers send at most by default.
POOL_FREE_BYTES = 8 * 1024 * 1024
SIZE_BYTES = 4
# How a TLS client begins, read as a size: a handshake record of version 3.
_TLS_HANDSHAKE = 0x1603

_unpack_size = Struct(">i").unpack_from


class FrameSizeError(RemoteProtocolError):
    """A size prefix that no frame may have: nothing can be known of the request behind it."""


class FramePool:
    """What the frame readers of one thread share: a scratch buffer, spare buffers, the budget for large frames."""

    __slots__ = ("_free", "_free_bytes", "_waiting", "budget_bytes", "reserved_bytes", "scratch")

    def __init__(self, budget_bytes: int | None) -> None:
        """`budget_bytes`: for all large frames together; None: no bound."""
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.budget_bytes = budget_bytes
        self.reserved_bytes = 0
        self._free: dict[int, list[bytearray]] = {}
        self._free_bytes = 0
        self._waiting: list[Callable[[], None]] = []

    def take(self, size: int) -> bytearray:
        """A buffer of at least `size` bytes, content undefined; sizes are powers of two so that buffers fit again."""
        capacity = 1 << max(12, (size - 1).bit_length())
        spare = self._free.get(capacity)
        if spare:
            self._free_bytes -= capacity
            return spare.pop()
        return bytearray(capacity)

    def give(self, buffer: bytearray) -> None:
        """Takes back a buffer that nobody looks at any more."""
        capacity = len(buffer)
        if self._free_bytes + capacity <= POOL_FREE_BYTES:
            self._free_bytes += capacity
            self._free.setdefault(capacity, []).append(buffer)

    def reserve(self, size: int) -> bool:
        """Sets `size` bytes of the budget aside; a frame larger than the whole budget passes when it is alone."""
        if self.budget_bytes is not None and self.reserved_bytes and self.reserved_bytes + size > self.budget_bytes:
            return False
        self.reserved_bytes += size
        return True

    def release(self, size: int) -> None:
        """Gives a reservation back and calls whoever waits for room, in the order they came."""
        self.reserved_bytes -= size
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()

    def wait(self, callback: Callable[[], None]) -> None:
        """Calls `callback` once when room may have become free."""
        self._waiting.append(callback)


class FrameReader:
    """The frames of one connection. `view[start:end]` is the current one, valid until `keep_rest` is called."""

    __slots__ = (
        "_buffer",
        "_filled",
        "_large_bytes",
        "_limit_name",
        "_max_frame_bytes",
        "_pool",
        "_position",
        "_reserved",
        "_size",
        "end",
        "start",
        "view",
    )

    def __init__(self, pool: FramePool, max_frame_bytes: int) -> None:
        self._pool = pool
        self.limit(max_frame_bytes, "socket.request.max.bytes")
        self._buffer: bytearray | None = None  # None: what was read lies in the shared scratch buffer
        self.view = pool.scratch
        self._position = 0  # of the next size prefix in `view`
        self._filled = 0
        self._size = 0  # of the frame that was found not to be whole, its prefix included; else 0
        self._reserved = 0
        self._large_bytes = 0  # size of the last frame, if it was too large for the scratch buffer
        self.start = 0
        self.end = 0

    def limit(self, max_frame_bytes: int, name: str) -> None:
        """Accepts frames up to this size; `name` is the property that says so."""
        self._max_frame_bytes = max_frame_bytes
        self._limit_name = name

    @property
    def has_rest(self) -> bool:
        """Whether bytes wait here that are not part of the frame handed out last."""
        return self._filled > self._position

    def get_buffer(self, limit: int = SCRATCH_BYTES) -> memoryview:
        """Where the next bytes go, never empty. `limit` bounds a read into the scratch buffer."""
        if self._buffer is None:
            if not self._large_bytes:
                return self._pool.scratch[:limit]
            self._adopt(self._pool.take(self._large_bytes))
        elif self._filled == len(self._buffer):
            self._grow(self._filled + 1)
        return self.view[self._filled :]

    def received(self, nbytes: int) -> bool:
        """`nbytes` were written into the buffer that `get_buffer` gave. False: a frame is known to go on."""
        self._filled += nbytes
        if self._filled < self._size:
            return False
        self._size = 0  # whether the frame is whole now is for `next_frame` to see
        return True

    def next_frame(self) -> bool:
        """Steps to the next whole frame; False when there is none. Raises FrameSizeError for an impossible size."""
        position, filled = self._position, self._filled
        start = position + SIZE_BYTES
        if start > filled:
            return False
        size: int
        (size,) = _unpack_size(self.view, position)
        if not 0 <= size <= self._max_frame_bytes:
            hint = "; TLS on a listener without it?" if size >> 16 == _TLS_HANDSHAKE else ""
            raise FrameSizeError(
                f"a frame of {size} bytes; accepted are 0 to {self._max_frame_bytes} ({self._limit_name}){hint}"
            )
        end = start + size
        if end > filled:
            self._size = SIZE_BYTES + size
            return False
        self.start = start
        self.end = self._position = end
        return True

    def keep_rest(self) -> bool:
        """Keeps what was not handed out, after the frames before it were dealt with.

        Returns False when the frame that has begun is large and the budget has no room for it: read no more until
        `retry_reservation` succeeds.
        """
        rest = self._filled - self._position
        if rest == 0:
            self._let_go()
            return True
        if self._buffer is None:
            scratch = self.view
            self._adopt(self._pool.take(max(rest, min(self._size, 2 * rest))))
            self.view[:rest] = scratch[self._position : self._position + rest]
        elif self._position:
            # Both sides overlap when little was handed out; a bytes copy of the rest is what memmove would do.
            self.view[:rest] = bytes(self.view[self._position : self._filled])
        self._position, self._filled = 0, rest
        return self.retry_reservation()

    def retry_reservation(self) -> bool:
        """Reserves room for the large frame that has begun, if there is one; False when there is still none."""
        large = self._size if self._size > SCRATCH_BYTES else 0
        if large > self._reserved:
            if not self._pool.reserve(large - self._reserved):
                return False
            self._reserved = large
        return True

    def wait_for_room(self, callback: Callable[[], None]) -> None:
        """Calls `callback` once when it is worth calling `retry_reservation` again."""
        self._pool.wait(callback)

    def drop_rest(self) -> None:
        """Forgets what was not handed out: the connection is closed."""
        self._position = self._filled

    def close(self) -> None:
        """Gives everything back; the reader is not used again."""
        self._large_bytes = 0
        self.drop_rest()
        self._let_go()

    def _let_go(self) -> None:
        # The connection is between frames.
        if self._buffer is not None:
            self._large_bytes = self.end - self.start + SIZE_BYTES if self.end - self.start > SCRATCH_BYTES // 4 else 0
            self.view.release()
            self._pool.give(self._buffer)
            self._buffer = None
            self.view = self._pool.scratch
        self._position = self._filled = self._size = 0
        if self._reserved:
            reserved, self._reserved = self._reserved, 0
            self._pool.release(reserved)

    def _adopt(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self.view = memoryview(buffer)

    def _grow(self, at_least: int) -> None:
        # Memory follows the bytes that came: twice what is here, the rest of the frame if that is less, and at once
        # what the last frame on this connection needed.
        old, old_buffer, filled = self.view, self._buffer, self._filled
        self._adopt(self._pool.take(max(at_least, min(max(self._size, at_least), max(2 * filled, self._large_bytes)))))
        self.view[:filled] = old[:filled]
        old.release()
        if old_buffer is not None:
            self._pool.give(old_buffer)
