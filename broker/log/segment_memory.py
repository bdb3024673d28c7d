"""The memory of segments.

From 128 KiB on, as in malloc, it is an anonymous private mapping, which returns to the system when the last reader
releases it. Its pages are populated in stretches ahead of the writes, because a page fault doubles a page's cost. A
smaller one is a bytearray, to save a page and an entry in the process's memory map (65,530 by default).

Measured with batches of 64 KiB on a virtual machine, in MB/s: populated in stretches 2,000 to 2,800; on page faults
1,400 to 1,700; huge pages 220 to 3,600, depending on the host's free memory; a reused mapping 8,500.
"""

import mmap
import sys
import weakref
from contextlib import suppress

MAPPED_FROM_BYTES = 128 * 1024
PAGE_BYTES = 4096
# Populated at once. Less needs more calls; more would block the event loop for over 0.1 ms.
STRETCH_BYTES = 256 * 1024
# MADV_POPULATE_WRITE (Linux 5.14) has no name in Python; older kernels reject it.
_POPULATE_WRITE = 23
_NONE = memoryview(b"")


class _Small(bytearray):
    """Memory that a weak reference can observe."""

    __slots__ = ("__weakref__",)


class SegmentMemory:
    """Memory behind a writable `view`, initially zero."""

    def __init__(self, view: memoryview, resident_bytes: int) -> None:
        self.view = view
        self.resident_bytes = resident_bytes

    def make_resident(self, end: int) -> int:
        """Populate at least the first `end` bytes; return `resident_bytes`."""
        start = self.resident_bytes
        if end <= start:
            return start
        up_to = min(-(-end // STRETCH_BYTES) * STRETCH_BYTES, len(self.view))
        mapping = self.view.obj
        if sys.platform == "linux" and isinstance(mapping, mmap.mmap):
            with suppress(OSError):  # an older kernel: pages are populated on page faults
                mapping.madvise(_POPULATE_WRITE, start, up_to - start)
        self.resident_bytes = up_to
        return up_to


class RetainedMemory:
    """Memory of deleted segments that responses still reference."""

    def __init__(self) -> None:
        self.size_in_bytes = 0
        self._references: dict[int, weakref.ref[object]] = {}  # by identity

    def __contains__(self, identity: int) -> bool:
        return identity in self._references

    def add(self, memory: SegmentMemory) -> None:
        """Count memory until its last reference is gone."""
        key, size = id(memory.view.obj), len(memory.view)

        def freed(_: object) -> None:
            del self._references[key]
            self.size_in_bytes -= size

        if key not in self._references:
            self._references[key] = weakref.ref(memory.view.obj, freed)
            self.size_in_bytes += size


class SpareMemory:
    """Mappings without content, for new segments of the same sizes. The system may take their pages (MADV_FREE)."""

    def __init__(self) -> None:
        self.size_in_bytes = 0
        self._by_size: dict[int, list[SegmentMemory]] = {}

    def add(self, memory: SegmentMemory) -> bool:
        """Keep memory; return False if it is small, has readers, or the system cannot take its pages."""
        if sys.platform != "linux" or (spare := reclaim(memory)) is None:
            return False
        mapping = spare.view.obj
        assert isinstance(mapping, mmap.mmap)
        try:
            mapping.madvise(mmap.MADV_FREE, 0, spare.resident_bytes)
        except OSError:
            memory.view = spare.view
            return False
        self._by_size.setdefault(len(spare.view), []).append(spare)
        self.size_in_bytes += len(spare.view)
        return True

    def take(self, size: int) -> SegmentMemory | None:
        spares = self._by_size.get(size)
        if spares is None:
            return None
        memory = spares.pop()
        if not spares:
            del self._by_size[size]
        self.size_in_bytes -= size
        return memory

    def limit(self, most_bytes: int) -> None:
        while self._by_size and self.size_in_bytes > most_bytes:
            self.take(next(iter(self._by_size)))


def allocate(capacity: int) -> SegmentMemory:
    if capacity < MAPPED_FROM_BYTES:
        return SegmentMemory(memoryview(_Small(capacity)), capacity)
    mapping = mmap.mmap(-1, capacity, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return SegmentMemory(memoryview(mapping), 0)


def reclaim(memory: SegmentMemory) -> SegmentMemory | None:
    """Return the memory, not cleared, for another segment; None if it is not mapped or has readers.

    `memory` gets a new view, which is empty if the memory is returned.
    """
    mapping = memory.view.obj
    if not isinstance(mapping, mmap.mmap):
        return None
    memory.view.release()
    try:
        # Resizing to the same size raises BufferError if other views of the mapping exist.
        mapping.resize(len(mapping))
    except (BufferError, OSError, SystemError):  # SystemError: a system without mremap
        memory.view = memoryview(mapping)
        return None
    memory.view = _NONE
    return SegmentMemory(memoryview(mapping), memory.resident_bytes)


def shrink(memory: SegmentMemory, size: int) -> SegmentMemory:
    """Move the first `size` bytes to memory that is little larger; no reader may have a view.

    `memory` cannot be used afterwards. A mapping is kept: a copy would block the event loop for 20 ms.
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
