"""A stretch of one partition's log: batches one after the other in one piece of memory, with an index of them.

Follows Kafka's LogSegment, OffsetIndex and TimeIndex. Different on purpose: the segment is memory, not a file; its size
is fixed when it is made, so that readers hold plain memoryviews of it while batches are added behind them; every batch
has an index entry (16 bytes), where Kafka has one entry for 4 KiB and scans the rest: scanning costs Python more.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from sluice.protocol.records.batch import BatchHeader, read_header

from .segment_memory import resident_bytes

INDEX_ENTRY_BYTES = 16  # 4 for the offset, 4 for the position, 8 for the timestamp
# Offsets and positions are kept relative to the segment, in 4 bytes; Kafka's bound on relative offsets.
MAX_RELATIVE_OFFSET = 2**31 - 1


class Segment:
    """Batches from `base_offset` on. Offsets have no gaps: each batch begins where the one before it ended."""

    __slots__ = (
        "_offsets",
        "_positions",
        "_timestamps",
        "base_offset",
        "capacity",
        "charged_bytes",
        "last_append_ms",
        "max_timestamp",
        "memory",
        "next_offset",
        "size",
    )

    def __init__(self, base_offset: int, memory: memoryview, now_ms: int) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.memory = memory
        self.capacity = len(memory)
        self.charged_bytes = len(memory)  # what the memory budget counts for it
        self.size = 0
        self.max_timestamp = -1  # of all batches so far; -1: none had one (Kafka's NO_TIMESTAMP)
        self.last_append_ms = now_ms
        # One entry a batch: base offset and position, relative to the segment, and the greatest timestamp up to it.
        self._offsets = array("I")
        self._positions = array("I")
        self._timestamps = array("q")

    def append(self, batch: memoryview | bytes, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """Copies `batch`, whose base offset is `next_offset`, to the end; False if there is no room for it."""
        start = self.size
        end = start + len(batch)
        if end > self.capacity or last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return False
        self.memory[start:end] = batch
        self._offsets.append(self.next_offset - self.base_offset)
        self._positions.append(start)
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
        self._timestamps.append(self.max_timestamp)
        self.size = end
        self.next_offset = last_offset + 1
        self.last_append_ms = now_ms
        return True

    def largest_timestamp(self) -> int:
        """What retention by time goes by: of the records, or of the last append where no record had one (ms)."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.last_append_ms

    def span(self, offset: int, max_bytes: int, up_to_offset: int, at_least_one: bool) -> tuple[int, int, int]:
        """Start and end position of whole batches from the one that holds `offset` on, and the offset after them.

        No batch that holds `up_to_offset` or later ones; no more than `max_bytes`, but for the first batch where
        `at_least_one`. Start and end are equal where nothing fits. `offset` must be in this segment.
        """
        offsets, positions = self._offsets, self._positions
        first = bisect_right(offsets, offset - self.base_offset) - 1
        start = positions[first]
        if up_to_offset >= self.next_offset:
            end, next_offset = self.size, self.next_offset
        else:
            entry = bisect_right(offsets, up_to_offset - self.base_offset) - 1
            end, next_offset = positions[entry], self.base_offset + offsets[entry]
        if end - start <= max_bytes or end == start:
            return start, end, next_offset
        # The last boundary between batches that max_bytes reaches; it is before `end`, so it has an entry.
        entry = max(bisect_right(positions, start + max_bytes, first) - 1, first)
        if entry == first and at_least_one:
            entry += 1
            if entry == len(positions):
                return start, self.size, self.next_offset
        return start, positions[entry], self.base_offset + offsets[entry]

    def slice(self, start: int, end: int) -> memoryview:
        """The bytes between two positions, by reference: they stay as they are as long as someone holds them."""
        return self.memory[start:end]

    def batches_from_timestamp(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Batches in order, from the first on that may hold a record at or after both `timestamp` and `offset`."""
        first = bisect_left(self._timestamps, timestamp)
        if offset > self.base_offset:
            first = max(first, bisect_right(self._offsets, offset - self.base_offset) - 1)
        for start in self._positions[first:]:
            header = read_header(self.memory, start)
            yield header, self.memory[start : start + header.size_in_bytes]

    def resident_bytes(self) -> int:
        """What the segment takes of the machine's memory, its index included."""
        return resident_bytes(len(self.memory), self.size) + len(self._positions) * INDEX_ENTRY_BYTES
