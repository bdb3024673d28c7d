"""The memory that segments are made of.

128 KiB and more are an anonymous private mapping: it goes back to the system as soon as the last reader lets go of it.
The system is asked for its pages a stretch at a time, ahead of what is written there: a page that comes only when it is
touched costs as much again for the fault. Below 128 KiB (malloc would map from there on, too) a bytearray costs no page
of its own and no entry in the process's map, which has 65,530 by default.

Measured with segments of 4 MiB, MB/s written in batches of 64 KiB, on a virtual machine whose host takes back what is
free: pages asked for by the stretch 2,000 to 2,800, pages as they are touched 1,400 to 1,700, huge pages 220 to 600
where the host has to find them first, and else 2,600 to 3,600. So none are asked for: what most machines would gain is
less than what such a one loses. Taking over the mapping that goes has 8,500.
"""

import mmap
import sys
from contextlib import suppress

MAPPED_FROM_BYTES = 128 * 1024
PAGE_BYTES = 4096
# What is asked for at once. Less costs more calls, more would stop the loop for more than a tenth of a millisecond.
STRETCH_BYTES = 256 * 1024
# MADV_POPULATE_WRITE, from Linux 5.14 on, which Python has no name for; kernels before refuse it.
_POPULATE_WRITE = 23


class SegmentMemory:
    """`view` is writable, and zero where nothing was written."""

    __slots__ = ("resident_bytes", "view")

    def __init__(self, view: memoryview, resident_bytes: int) -> None:
        """So many bytes, from the first on, take nothing more of the machine's memory when they are written to."""
        self.view = view
        self.resident_bytes = resident_bytes

    def make_resident(self, end: int) -> int:
        """Has the system give what is missing of the first `end` bytes, and a little more; returns `resident_bytes`."""
        start = self.resident_bytes
        if end <= start:
            return start
        up_to = min(-(-end // STRETCH_BYTES) * STRETCH_BYTES, len(self.view))
        mapping = self.view.obj
        if sys.platform == "linux" and isinstance(mapping, mmap.mmap):
            with suppress(OSError):  # an older kernel: each page comes when it is written to
                mapping.madvise(_POPULATE_WRITE, start, up_to - start)
        self.resident_bytes = up_to
        return up_to


def allocate(capacity: int) -> SegmentMemory:
    """`capacity` bytes of zeroes."""
    if capacity < MAPPED_FROM_BYTES:
        return SegmentMemory(memoryview(bytearray(capacity)), capacity)
    mapping = mmap.mmap(-1, capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return SegmentMemory(memoryview(mapping), 0)


def reclaim(memory: SegmentMemory) -> SegmentMemory | None:
    """The same memory for another segment, not cleared; None where it is not mapped, or someone still reads it.

    `memory` itself cannot be used any more.
    """
    mapping = memory.view.obj
    if not isinstance(mapping, mmap.mmap):
        return None
    memory.view.release()
    try:
        # To its own size: nothing changes, but it is refused (BufferError) while there are other views of the mapping.
        mapping.resize(len(mapping))
    except (BufferError, OSError, SystemError):  # SystemError: a system without mremap
        return None
    return SegmentMemory(memoryview(mapping), memory.resident_bytes)


def shrink(memory: SegmentMemory, size: int) -> SegmentMemory:
    """The first `size` bytes of `memory`, of which nobody has a view, in memory that is hardly larger.

    `memory` itself cannot be used any more. A mapping keeps its pages: to copy 64 MiB would stop the loop for 20 ms.
    """
    mapping = memory.view.obj
    if not isinstance(mapping, mmap.mmap) or size < MAPPED_FROM_BYTES:
        smaller = allocate(max(size, 1))
        smaller.make_resident(size)
        smaller.view[:size] = memory.view[:size]
        return smaller
    memory.view.release()
    with suppress(BufferError, OSError, SystemError):  # SystemError: a system without mremap
        mapping.resize(-(-size // PAGE_BYTES) * PAGE_BYTES)
    view = memoryview(mapping)
    return SegmentMemory(view, min(memory.resident_bytes, len(view)))
