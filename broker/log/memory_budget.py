"""The bound on the memory of all logs together (`sluice.log.memory.bytes`). Kafka has none: it has a disk.

A segment is charged with its whole capacity when it is made, so the bound holds after every append, and an append
into a segment that is there costs nothing here. When a new segment would pass the bound, the segments that were
appended to least recently go first, over all partitions, the active ones included: a log can be left with nothing. One
that is as large as what is wanted hands its memory over, if nobody reads it any more.

One heap entry a log, with the last append to its oldest segment as it was when the entry was made. Appends move that
only forward, so an entry is put right when it comes to the top, and never before.
"""

from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from typing import Protocol

from .segment_memory import SegmentMemory, allocate, reclaim

SEGMENTS_IN_BUDGET = 16  # of the largest size, so that letting one go takes little of what is kept


class EvictableLog(Protocol):
    """A log as the budget sees it."""

    def oldest_append_ms(self) -> int | None:
        """When its oldest segment was last appended to; None: it has no segment."""

    def drop_oldest_segment(self) -> None:
        """Lets the oldest segment go, and releases its memory."""


class MemoryBudget:
    """What the segments of all logs take of the memory, and what they may take."""

    __slots__ = (
        "_logs",
        "_order",
        "_spare",
        "_wanted_bytes",
        "_watched",
        "largest_segment_bytes",
        "limit_bytes",
        "used_bytes",
    )

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.largest_segment_bytes = limit_bytes // SEGMENTS_IN_BUDGET
        self.used_bytes = 0
        self._logs: list[tuple[int, int, EvictableLog]] = []  # heap of (last append, order of entry, log)
        self._watched: set[EvictableLog] = set()  # those in the heap
        self._order = count()  # of two logs with the same last append, the one that came first
        self._wanted_bytes = -1  # what is being allocated; -1: nothing is
        self._spare: SegmentMemory | None = None  # of that size, from a segment that went

    def allocate(self, capacity: int) -> SegmentMemory:
        """Makes room for `capacity` bytes, and gives them. What is larger than the limit stands alone."""
        self._wanted_bytes = capacity
        while self.used_bytes + capacity > self.limit_bytes and self._logs:
            self._evict_one()
        memory, self._spare, self._wanted_bytes = self._spare, None, -1
        if memory is None:
            memory = allocate(capacity)
        self.used_bytes += capacity
        return memory

    def recharge(self, change: int) -> None:
        """Corrects what a segment is charged with; what is over the limit goes with the next allocation."""
        self.used_bytes += change

    def release(self, charged_bytes: int, memory: SegmentMemory) -> None:
        """Takes back the memory of a segment that went, and what it was charged with."""
        self.used_bytes -= charged_bytes
        if len(memory.view) == self._wanted_bytes and self._spare is None:
            self._spare = reclaim(memory)

    def watch(self, log: EvictableLog, last_append_ms: int) -> None:
        """From now on `log`, which gets its first segment, may be asked to let segments go."""
        if log not in self._watched:
            self._watched.add(log)
            heappush(self._logs, (last_append_ms, next(self._order), log))

    def forget(self, log: EvictableLog) -> None:
        """Never asks `log` again: its topic is deleted."""
        if log in self._watched:
            self._watched.discard(log)
            self._logs = [entry for entry in self._logs if entry[2] is not log]
            heapify(self._logs)

    def _evict_one(self) -> None:
        """Lets one segment go, or puts one entry of the heap right."""
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
