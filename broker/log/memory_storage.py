"""Segments in memory, with one bound for all logs (memory_budget.py)."""

from collections.abc import Callable, Sequence

from .leader_epochs import LeaderEpochs
from .log_config import LogConfig
from .log_storage import LogSegment, StoredLog
from .memory_budget import MemoryBudget
from .segment import Segment
from .segment_memory import PAGE_BYTES, allocate

# Most topics of a test have few records: 100 such partitions use 400 KiB.
FIRST_SEGMENT_BYTES = PAGE_BYTES


class MemoryStorage:
    def __init__(self, memory_bytes: int) -> None:
        self.budget = MemoryBudget(memory_bytes)

    def configure(self, config: LogConfig) -> None:
        pass

    def save_epochs(self, epochs: LeaderEpochs) -> None:
        pass

    def first_segments(self, log: StoredLog, base_offset: int) -> Sequence[LogSegment]:
        return ()  # a log uses no memory before its first record

    def begin_segment(self, log: StoredLog, base_offset: int, size: int, room: int, now_ms: int) -> Segment:
        continues = size <= room
        most_bytes = room if continues else max(size, log.config.segment_bytes)
        # The allocation may evict segments of this log too.
        memory = self.budget.allocate(min(self._capacity(log, size), most_bytes))
        self.budget.watch(log, now_ms)
        return Segment(base_offset, memory, now_ms, continues=continues)

    def largest_segment_bytes(self, log: StoredLog) -> int:
        return min(log.config.segment_bytes, self.budget.largest_segment_bytes)

    def segment_filled(self, log: StoredLog, segment: LogSegment) -> None:
        assert isinstance(segment, Segment)
        resident_bytes = segment.resident_bytes()
        self.budget.recharge(resident_bytes - segment.charged_bytes)
        segment.charged_bytes = resident_bytes

    def begin_cleaned(self, log: StoredLog, base_offset: int, size: int, now_ms: int) -> Segment:
        # Not charged, because the segments to be replaced could be evicted for it. A batch can grow.
        segment = Segment(base_offset, allocate(size * 2 + PAGE_BYTES), now_ms)
        segment.charged_bytes = 0
        return segment

    def save_cleaned(self, cleaned: LogSegment, then: Callable[[], None]) -> None:
        then()

    def replace(self, log: StoredLog, old: Sequence[LogSegment], new: LogSegment) -> None:
        assert isinstance(new, Segment)
        for segment in old:
            self.delete(segment)
        new.shrink()
        self.segment_filled(log, new)

    def records_deleted(self, log: StoredLog) -> None:
        self.budget.records_deleted(log)

    def delete(self, segment: LogSegment) -> None:
        assert isinstance(segment, Segment)
        self.budget.release(segment.charged_bytes, segment.memory)
        segment.deleted()

    def truncated(self, log: StoredLog) -> None:
        """Do nothing."""

    def failed(self, error: OSError) -> str:
        return f"{error.filename}: {error.strerror}"  # raised by a fault rule, since there is no disk

    def forget(self, log: StoredLog, segments: Sequence[LogSegment]) -> None:
        self.budget.forget(log)
        for segment in segments:
            assert isinstance(segment, Segment)
            self.budget.recycle(segment.charged_bytes, segment.memory)
            segment.deleted()

    def _capacity(self, log: StoredLog, size: int) -> int:
        """Return half of the log's size as a power of two, to limit both unused memory and segments."""
        half = 1 << (log.size_in_bytes >> 1).bit_length() >> 1
        return max(min(half, self.largest_segment_bytes(log)), FIRST_SEGMENT_BYTES, -(-size // PAGE_BYTES) * PAGE_BYTES)
