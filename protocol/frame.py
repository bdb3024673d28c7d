"""Size-prefixed frames from a byte stream, sans-I/O: `get_buffer` -> `received` -> `next_frame` ... -> `keep_rest`.

All connections read into one shared scratch buffer, so a connection between frames uses no memory. An incomplete frame
moves to a pooled buffer of its connection. Only received bytes allocate memory, not a size prefix. A frame too large
for the scratch buffer must first reserve its whole size from a budget that all connections share
(`queued.max.request.bytes`), and can then always be completed, so readers cannot deadlock. A frame too large for the
pool gets a mapping of its whole size, whose pages the system adds as they are written: clearing and copying buffers for
100 MB would block the event loop for 100 ms.
"""

import mmap
from collections.abc import Callable
from struct import Struct

from sluice.errors import RemoteProtocolError

# A bulk producer needs 4 system calls per MiB, a small request wastes nothing.
SCRATCH_BYTES = 256 * 1024
# A connection's own buffer grows to this many frames while reads fill it. A poll, a read and a write cost a quarter of
# a request of 64 KiB, and less than a tenth if four requests share them.
_FRAMES_AT_ONCE = 4
# Bytes read from a waiting connection before its reading is paused: enough to notice a disconnect.
PARKED_READ_BYTES = 4 * 1024
# All buffers kept for reuse: eight frames of 1 MiB, the default maximum of producers.
POOL_FREE_BYTES = 8 * 1024 * 1024
SIZE_BYTES = 4
# The first two bytes of other protocols, read as a size.
_OTHER_PROTOCOLS = {
    0x1603: "; TLS on a listener without TLS?",
    0x1503: "; a TLS alert: does the peer expect TLS?",
    0x4854: "; an HTTP response?",
}

Buffer = bytearray | mmap.mmap
_unpack_size = Struct(">i").unpack_from


class FrameSizeError(RemoteProtocolError):
    """An invalid size prefix; nothing about the request is known."""


class FramePool:
    def __init__(self, budget_bytes: int | None) -> None:
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))
        self.budget_bytes = budget_bytes
        self.reserved_bytes = 0
        self._free: dict[int, list[bytearray]] = {}
        self._free_bytes = 0
        self._waiting: list[Callable[[], None]] = []
        self.on_wait: Callable[[], None] | None = None

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def take(self, size: int) -> Buffer:
        """Return a buffer of at least `size` bytes with undefined content."""
        if size > POOL_FREE_BYTES:
            return mmap.mmap(-1, size)
        capacity = 1 << max(12, (size - 1).bit_length())
        spare = self._free.get(capacity)
        if spare:
            self._free_bytes -= capacity
            return spare.pop()
        return bytearray(capacity)

    def give(self, buffer: Buffer) -> None:
        capacity = len(buffer)
        if isinstance(buffer, bytearray) and self._free_bytes + capacity <= POOL_FREE_BYTES:
            self._free_bytes += capacity
            self._free.setdefault(capacity, []).append(buffer)

    def reserve(self, size: int) -> bool:
        """Reserve `size` bytes of the budget; without other reservations, also more than the budget."""
        if self.budget_bytes is not None and self.reserved_bytes and self.reserved_bytes + size > self.budget_bytes:
            return False
        self.reserved_bytes += size
        return True

    def charge(self, size: int) -> None:
        self.reserved_bytes += size

    def release(self, size: int) -> None:
        self.reserved_bytes -= size
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback()

    def wait(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the budget may have room."""
        self._waiting.append(callback)
        if self.on_wait is not None:
            self.on_wait()


class FrameReader:
    """The frames of one connection. `view[start:end]` is the current one, valid until `keep_rest`."""

    # Not a Struct, whose fields are written more slowly.
    __slots__ = (
        "_buffer",
        "_is_whole",
        "_large_bytes",
        "_limit_name",
        "_max_frame_bytes",
        "_position",
        "_reserved",
        "_size",
        "end",
        "filled",
        "pool",
        "start",
        "view",
    )

    def __init__(self, pool: FramePool, max_frame_bytes: int) -> None:
        self.pool = pool
        self.limit(max_frame_bytes, "socket.request.max.bytes")
        self._buffer: Buffer | None = None  # None: the data is in the shared scratch buffer
        self.view = pool.scratch
        self._position = 0
        self.filled = 0
        self._size = 0  # of an incomplete frame, including its prefix; else 0
        self._reserved = 0
        self._large_bytes = 0
        self._is_whole = False  # the current buffer is of `replace`
        self.start = 0
        self.end = 0

    def limit(self, max_frame_bytes: int, name: str) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._limit_name = name

    @property
    def has_rest(self) -> bool:
        return self.filled > self._position

    @property
    def rest_bytes(self) -> int:
        return self.filled - self._position

    @property
    def reserved_received(self) -> int:
        """The received bytes of an incomplete frame that has a reservation; else 0."""
        return self.filled if self._reserved and self._size else 0

    @property
    def incomplete(self) -> tuple[memoryview, int]:
        """Return the received bytes of the incomplete frame, if any, and its size, or 0; both include the prefix."""
        return self.view[self._position : self.filled], self._size

    def replace(self, frame: Buffer) -> None:
        """Continue with this frame in place of the incomplete one, as if the rest had been received."""
        if self._buffer is not None:
            self.pool.give(self._buffer)
        self._adopt(frame)
        self._position, self.filled, self._is_whole = 0, len(frame), True

    def get_buffer(self, limit: int = SCRATCH_BYTES) -> memoryview:
        """Return the buffer for the next bytes; `limit` bounds a read into the scratch buffer."""
        if self._buffer is None:
            if not self._large_bytes:
                scratch = self.pool.scratch
                return scratch if limit == SCRATCH_BYTES else scratch[:limit]
            self._adopt(self.pool.take(self._large_bytes))
        elif self.filled == len(self._buffer):
            self._grow(self.filled + 1)
        return self.view[self.filled :]

    def received(self, nbytes: int) -> bool:
        self.filled += nbytes
        if self.filled < self._size:
            return False
        self._size = 0  # `next_frame` checks whether the frame is whole
        return True

    def next_frame(self) -> bool:
        """Advance to the next whole frame; return False if there is none. Raises FrameSizeError."""
        position, filled = self._position, self.filled
        start = position + SIZE_BYTES
        if start > filled:
            return False
        size: int
        (size,) = _unpack_size(self.view, position)
        if not 0 <= size <= self._max_frame_bytes:
            hint = _OTHER_PROTOCOLS.get(size >> 16, "")
            raise FrameSizeError(
                f"invalid frame size {size}; expected 0 to {self._max_frame_bytes} bytes ({self._limit_name}){hint}"
            )
        end = start + size
        if end > filled:
            self._size = SIZE_BYTES + size
            return False
        self.start = start
        self.end = self._position = end
        return True

    def waiting_frame(self) -> memoryview | None:
        """Return the next frame if it is whole, without advancing; valid until the next read."""
        start = self._position + SIZE_BYTES
        if start > self.filled:
            return None
        end: int = start + _unpack_size(self.view, self._position)[0]
        return self.view[start:end] if start <= end <= self.filled else None

    def keep_rest(self) -> bool:
        """Keep the bytes after the current frame; call it after processing all whole frames.

        If it returns False, the budget has no room for the incomplete frame: do not read until `retry_reservation`
        succeeds.
        """
        rest = self.filled - self._position
        if rest == 0:
            if self._buffer is None and not self._reserved:  # as after most reads
                self._position = self.filled = self._size = 0
            else:
                self._release_buffer()
            return True
        if self._buffer is None:
            scratch = self.view
            self._adopt(self.pool.take(max(rest, self._mapped_bytes or min(self._size, 2 * rest))))
            self.view[:rest] = scratch[self._position : self._position + rest]
        elif self._position:
            frame = SIZE_BYTES + self.end - self.start
            most = max(frame, min(SCRATCH_BYTES, _FRAMES_AT_ONCE * frame))
            is_full = self.filled == len(self.view)  # more may have arrived than it has room for
            # To another buffer: views of earlier frames may be in use.
            self._move(self._position, max(rest, min(2 * self.filled if is_full else len(self.view), most)))
        self._position, self.filled = 0, rest
        return self.retry_reservation()

    def retry_reservation(self) -> bool:
        """Reserve room for the incomplete large frame, if any; return False if the budget has none."""
        large = self._size if self._size > SCRATCH_BYTES else 0
        if large > self._reserved:
            if not self.pool.reserve(large - self._reserved):
                return False
            self._reserved = large
        return True

    def wait_for_room(self, callback: Callable[[], None]) -> None:
        self.pool.wait(callback)

    def drop_rest(self) -> None:
        self._position = self.filled

    def close(self) -> None:
        self._large_bytes = 0
        self.drop_rest()
        self._release_buffer()

    def _release_buffer(self) -> None:
        if self._buffer is not None:
            size = 0 if self._is_whole else self.end - self.start
            self._large_bytes = size + SIZE_BYTES if size > SCRATCH_BYTES // 4 else 0
            self._is_whole = False
            self.view.release()
            self.pool.give(self._buffer)
            self._buffer = None
            self.view = self.pool.scratch
        self._position = self.filled = self._size = 0
        if self._reserved:
            reserved, self._reserved = self._reserved, 0
            self.pool.release(reserved)

    @property
    def _mapped_bytes(self) -> int:
        return self._size if self._size > POOL_FREE_BYTES else 0

    def _adopt(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self.view = memoryview(buffer)

    def _grow(self, at_least: int) -> None:
        # Grow to twice the received bytes, or to the rest of the frame, but at least to the connection's last frame.
        size = self._mapped_bytes or min(max(self._size, at_least), max(2 * self.filled, self._large_bytes))
        self._move(0, max(at_least, size))

    def _move(self, start: int, size: int) -> None:
        """Move the received bytes from `start` on to a buffer of `size` bytes."""
        old, old_buffer = self.view, self._buffer
        self._adopt(self.pool.take(size))
        self.view[: self.filled - start] = old[start : self.filled]
        old.release()
        if old_buffer is not None:
            self.pool.give(old_buffer)
