"""The memory that segments are made of.

128 KiB and more are an anonymous private mapping: it goes back to the system as soon as the last reader lets go of it,
and, from 2 MiB on, it asks for huge pages. Below (malloc would map from there on, too) a bytearray costs no page of its
own and no entry in the process's map, which has 65,530 by default.

Measured with segments of 4 MiB of which the oldest goes at 64 MiB, MB/s appended in batches of 64 KiB: mapping with
huge pages 3,000 to 4,000, without 1,200, shared mapping (what `mmap.mmap(-1, n)` gives) 1,100; the rest of the time the
kernel clears pages. Taking over the mapping that goes has 8,500. A bytearray has 4,900 once malloc recycles its blocks
and 1,200 until then, and what malloc keeps, nobody gets back.
"""

import mmap
import sys
from contextlib import suppress

MAPPED_FROM_BYTES = 128 * 1024
PAGE_BYTES = 4096
HUGE_PAGE_BYTES = 2 * 1024 * 1024


def allocate(capacity: int) -> memoryview:
    """`capacity` bytes of zeroes, writable."""
    if capacity < MAPPED_FROM_BYTES:
        return memoryview(bytearray(capacity))
    mapping = mmap.mmap(-1, capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux" and capacity >= HUGE_PAGE_BYTES:
        with suppress(AttributeError, OSError):  # a libc or a kernel without huge pages: the same memory, more slowly
            mapping.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(mapping)


def reclaim(memory: memoryview) -> memoryview | None:
    """The same memory for another segment, not cleared; None where it is not mapped, or someone still reads it.

    `memory` itself cannot be used any more.
    """
    mapping = memory.obj
    if not isinstance(mapping, mmap.mmap):
        return None
    memory.release()
    try:
        # To its own size: nothing changes, but it is refused (BufferError) while there are other views of the mapping.
        mapping.resize(len(mapping))
    except (BufferError, OSError, SystemError):  # SystemError: a system without mremap
        return None
    return memoryview(mapping)


def shrink(memory: memoryview, size: int) -> memoryview:
    """The first `size` bytes of `memory`, of which nobody has a view, in memory that is hardly larger.

    `memory` itself cannot be used any more. A mapping keeps its pages: to copy 64 MiB would stop the loop for 20 ms.
    """
    mapping = memory.obj
    if not isinstance(mapping, mmap.mmap) or size < MAPPED_FROM_BYTES:
        smaller = allocate(max(size, 1))
        smaller[:size] = memory[:size]
        return smaller
    memory.release()
    with suppress(BufferError, OSError, SystemError):  # SystemError: a system without mremap
        mapping.resize(-(-size // PAGE_BYTES) * PAGE_BYTES)
    return memoryview(mapping)


def resident_bytes(capacity: int, written: int) -> int:
    """What memory of `capacity` bytes takes of the machine's when its first `written` bytes have been written to."""
    if MAPPED_FROM_BYTES <= capacity < HUGE_PAGE_BYTES:
        return min(-(-written // PAGE_BYTES) * PAGE_BYTES, capacity)
    return capacity  # a bytearray is cleared when it is made; a reclaimed mapping has been written to
