"""The bound on the memory of all logs together (`sluice.log.memory.bytes`); Kafka has none, since it uses files.

A segment is charged its whole capacity at creation, so an append into an existing segment costs nothing here. If a new
segment would exceed the bound, segments without records from the log start offset on are evicted, then those with the
oldest last append in any partition, including active ones: a log can become empty.

Within the bound, the memory of deleted topics is kept for new segments.

The heap has one entry per log: the time of the last append to its oldest segment, corrected when the entry reaches the
top.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Protocol

from .segment_memory import RetainedMemory, SegmentMemory, SpareMemory, allocate, reclaim

SEGMENTS_IN_BUDGET = 16  # of the largest size, so that one eviction removes a small part of the data


class EvictableLog(Protocol):
    def oldest_append_ms(self) -> int | None:
        """Return the time of the last append to the oldest segment, or None."""

    def drop_oldest_segment(self) -> None: ...

    def drop_deleted_segment(self) -> bool:
        """Drop the oldest segment if all of its records are deleted; return whether they were."""


class MemoryBudget:
    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.largest_segment_bytes = limit_bytes // SEGMENTS_IN_BUDGET
        self.used_bytes = 0
        self.retained = RetainedMemory()
        # Called before an allocation if memory is retained, to close clients that do not read.
        self.retained_by: list[Callable[[RetainedMemory], None]] = []
        self._logs: list[tuple[int, int, EvictableLog]] = []  # heap of (last append, order of entry, log)
        self._watched: set[EvictableLog] = set()
        self._of_deleted: dict[EvictableLog, None] = {}  # logs that may have segments of deleted records, in order
        self._order = count()  # breaks ties between equal append times
        self._wanted_bytes = -1  # the size being allocated, or -1
        self._reclaimed: SegmentMemory | None = None  # an evicted segment's memory of that size
        self._spare = SpareMemory()

    def allocate(self, capacity: int) -> SegmentMemory:
        """Allocate memory, after evictions if necessary; a single segment may exceed the limit."""
        memory = self._spare.take(capacity)
        if memory is None:
            self._wanted_bytes = capacity
        while self.used_bytes + capacity > self.limit_bytes and self._logs:
            if not self._evict_deleted():
                self._evict_one()
        if self.retained.size_in_bytes:
            for limit in self.retained_by:
                limit(self.retained)
        if memory is None:
            memory, self._reclaimed, self._wanted_bytes = self._reclaimed, None, -1
        if memory is None:
            memory = allocate(capacity)
        self.used_bytes += capacity
        self._spare.limit(self.limit_bytes - self.used_bytes)
        return memory

    def recharge(self, change: int) -> None:
        """Adjust the charge; the next allocation evicts an excess."""
        self.used_bytes += change

    def release(self, charged_bytes: int, memory: SegmentMemory) -> None:
        self.used_bytes -= charged_bytes
        if len(memory.view) == self._wanted_bytes and self._reclaimed is None:
            self._reclaimed = reclaim(memory)
            if self._reclaimed is not None:
                return
        self.retained.add(memory)

    def recycle(self, charged_bytes: int, memory: SegmentMemory) -> None:
        """Release the memory of a deleted topic, and keep it for reuse."""
        self.used_bytes -= charged_bytes
        unused_bytes = self.limit_bytes - self.used_bytes - self._spare.size_in_bytes
        if len(memory.view) > unused_bytes or not self._spare.add(memory):
            self.retained.add(memory)

    def watch(self, log: EvictableLog, last_append_ms: int) -> None:
        if log not in self._watched:
            self._watched.add(log)
            heappush(self._logs, (last_append_ms, next(self._order), log))

    def records_deleted(self, log: EvictableLog) -> None:
        self._of_deleted[log] = None

    def forget(self, log: EvictableLog) -> None:
        self._of_deleted.pop(log, None)
        if log in self._watched:
            self._watched.discard(log)
            self._logs = [entry for entry in self._logs if entry[2] is not log]
            heapify(self._logs)

    def _evict_deleted(self) -> bool:
        while self._of_deleted:
            log = next(iter(self._of_deleted))
            if log.drop_deleted_segment():
                return True
            del self._of_deleted[log]
        return False

    def _evict_one(self) -> None:
        entered_ms, _, log = self._logs[0]
        oldest_ms = log.oldest_append_ms()
        if oldest_ms is not None and oldest_ms <= entered_ms:
            log.drop_oldest_segment()
            oldest_ms = log.oldest_append_ms()
        if oldest_ms is None:
            heappop(self._logs)
            self._watched.discard(log)
        else:
            heapreplace(self._logs, (oldest_ms, next(self._order), log))
