"""A log segment in memory, or a part of one: consecutive batches with an index.

Follows Kafka's LogSegment, OffsetIndex and TimeIndex. Different on purpose:
- Memory of fixed size replaces the file, so that readers can use views of it during appends. A segment grows by parts.
- Every batch has an index entry (16 bytes). Kafka has one per 4 KiB and scans the rest, which is slow in Python.

Index entries have end positions, so that searches also work with gaps between batches.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from sluice.protocol.records.batch import BatchHeader, read_header

from .segment_memory import SegmentMemory, shrink

INDEX_ENTRY_BYTES = 16  # 4 for the offset, 4 for the position, 8 for the timestamp
# Relative offsets and positions have 4 bytes; this is Kafka's bound.
MAX_RELATIVE_OFFSET = 2**31 - 1


class Segment:
    def __init__(self, base_offset: int, memory: SegmentMemory, now_ms: int, *, continues: bool = False) -> None:
        self.base_offset = base_offset
        self.continues = continues
        self.next_offset = base_offset
        self.memory = memory
        self.capacity = len(memory.view)
        self.charged_bytes = self.capacity
        self.size = 0
        self._view = memory.view
        self._ready = memory.resident_bytes  # writable up to here without page faults
        self.max_timestamp = -1  # of all batches so far
        self.last_append_ms = now_ms
        # Per batch: last offset and end, relative to the segment, and the greatest timestamp so far plus one: an append
        # to an unsigned array takes a third of the time.
        self._last_offsets = array("I")
        self._ends = array("I")
        self._timestamps = array("Q")

    def append(self, batch: memoryview | bytes, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        start = self.size
        end = start + len(batch)
        relative_offset = last_offset - self.base_offset
        if relative_offset > MAX_RELATIVE_OFFSET or (end > self._ready and not self._make_ready(end)):
            return False
        self._view[start:end] = batch
        self._last_offsets.append(relative_offset)
        self._ends.append(end)
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
        self._timestamps.append(self.max_timestamp + 1)
        self.size = end
        self.next_offset = last_offset + 1
        self.last_append_ms = now_ms
        return True

    def _make_ready(self, end: int) -> bool:
        if end > self.capacity:
            return False
        self._ready = self.memory.make_resident(end)
        return True

    def span(self, offset: int, max_bytes: int, up_to_offset: int, at_least_one: bool) -> tuple[int, int, int]:
        last_offsets, ends, base_offset = self._last_offsets, self._ends, self.base_offset
        first = bisect_left(last_offsets, offset - base_offset)
        start = ends[first - 1] if first else 0
        if up_to_offset >= self.next_offset:
            end, next_offset = self.size, self.next_offset
            if end - start <= max_bytes:
                return start, end, next_offset
            count = len(ends)
        else:
            count = bisect_left(last_offsets, up_to_offset - base_offset)
        # `count` includes the batches before `offset`.
        if count > first and ends[count - 1] - start > max_bytes:
            count = bisect_right(ends, start + max_bytes, first, count)
            if count == first and at_least_one:
                count += 1
        if count <= first:
            return start, start, base_offset + last_offsets[first - 1] + 1 if first else base_offset
        return start, ends[count - 1], base_offset + last_offsets[count - 1] + 1

    def slice(self, start: int, end: int) -> memoryview:
        return self._view[start:end]

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        return self._batches(bisect_left(self._last_offsets, offset - self.base_offset))

    def batches_from_timestamp(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        first = bisect_left(self._timestamps, timestamp + 1)
        return self._batches(max(first, bisect_left(self._last_offsets, offset - self.base_offset)))

    def _batches(self, first: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        start = self._ends[first - 1] if first else 0
        for end in self._ends[first:]:
            yield read_header(self._view, start), self._view[start:end]
            start = end

    def shrink(self) -> None:
        """Free unused memory; no reader may have a view of it yet."""
        self.memory = shrink(self.memory, self.size)
        self._view = self.memory.view
        self.capacity = self._ready = self.size

    def deleted(self) -> None:
        """Remove the batches, whose memory may be reused; a suspended cleaning may still reference the segment."""
        self._view = self.memory.view
        for entries in (self._last_offsets, self._ends, self._timestamps):
            del entries[:]

    def truncate_to(self, offset: int) -> None:
        # Readers may use the removed bytes, so nothing is appended afterwards.
        kept = bisect_left(self._last_offsets, offset - self.base_offset)
        for entries in (self._last_offsets, self._ends, self._timestamps):
            del entries[kept:]
        self.size = self.capacity = self._ready = self._ends[-1] if kept else 0
        self.next_offset = self.base_offset + self._last_offsets[-1] + 1 if kept else self.base_offset
        self.max_timestamp = self._timestamps[-1] - 1 if kept else -1

    def resident_bytes(self) -> int:
        return self.memory.resident_bytes + len(self._ends) * INDEX_ENTRY_BYTES
