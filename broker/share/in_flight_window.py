"""The window of records in flight of a share partition: its batches, and the offsets at which it starts and ends.

ACKNOWLEDGED and ARCHIVED records at the start leave it. After a load, records between the loaded batches are gaps.
"""

from msgspec import Struct

from .delivery import RecordState
from .in_flight import InFlightBatch, InFlightBatches


class Gaps(Struct, eq=False):
    """Offsets from `start_offset` that a load found between batches; valid until `end_offset` changes."""

    start_offset: int
    end_offset: int


class InFlightWindow:
    """The base class of SharePartition, without acquisition and acknowledgement."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.end_offset = 0
        self.delivery_complete_count = 0
        self.batches = InFlightBatches()
        self._may_have_available = False
        self._gaps: Gaps | None = None

    @property
    def in_flight(self) -> int:
        return self.end_offset - self.start_offset + 1 if len(self.batches) else 0

    def next_fetch_offset(self) -> int:
        if not len(self.batches) or self.start_offset > self.batches.last.last_offset:
            self._may_have_available = False
            return self.end_offset
        if self._may_have_available:
            found = self._first_available()
            if found is not None:
                return found
            self._may_have_available = False
        return self.end_offset + 1

    def _first_available(self) -> int | None:
        gaps = self._active_gaps()
        gap = -1 if gaps is None else gaps.start_offset
        for batch in self.batches:
            if gaps is not None:
                if batch.first_offset > gap:
                    return gap
                gap = max(batch.last_offset + 1, gap)
            for first, _, state in batch.parts():
                if state.is_available:
                    return first
        return None

    # -- the start offset ----------------------------------------------------------------------------------------------

    def log_start_moved(self, log_start_offset: int) -> None:
        """Drop available records that the log no longer has; acquired ones may be acknowledged."""
        if log_start_offset <= self.start_offset:
            return
        if not len(self.batches):
            self.start_offset = self.end_offset = log_start_offset
            self.delivery_complete_count = 0
            return
        self.delivery_complete_count -= self._terminal_before(log_start_offset)
        if self._archive(self.start_offset, log_start_offset - 1, RecordState.AVAILABLE, counts=False):
            self._may_have_available = True
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)

    def _terminal_before(self, offset: int) -> int:
        count = 0
        for batch in self.batches:
            for first, last, state in batch.parts():
                if state.state.is_terminal:
                    count += max(0, min(last, offset - 1) - max(first, self.start_offset) + 1)
        return count

    def _archive_missing(self, fetch_offset: int, base_offset: int) -> None:
        """Archive available records that compaction removed between the fetch offset and the first batch."""
        if fetch_offset < base_offset and self._archive(
            fetch_offset, base_offset - 1, RecordState.AVAILABLE, counts=True
        ):
            self._may_have_available = True

    def _archive(self, first: int, last: int, state: RecordState, *, counts: bool) -> bool:
        """Archive the records of a range that are in a state; return whether there are any."""
        any_archived = False
        for batch in self.batches:
            if batch.first_offset > last:
                break
            if batch.last_offset < first:
                continue
            if batch.whole is not None and not batch.is_within(first, last):
                if batch.whole.state is not state:
                    continue
                batch.split()
            for start, end, part in batch.parts():
                if first <= start <= last and part.state is state:
                    part.archive()
                    any_archived = True
                    if counts:
                        self.delivery_complete_count += end - start + 1
        return any_archived

    def _advance_start(self) -> bool:
        if not self._can_advance():
            return False
        complete_until, count = self._complete_until()
        if complete_until is None:
            return False
        if complete_until == self.batches.last.last_offset:
            self.start_offset = self.end_offset = complete_until + 1
            self.batches.clear()
            self.delivery_complete_count = 0
            return True
        batch = self.batches.floor(complete_until)
        assert batch is not None
        if complete_until == batch.last_offset:
            self.start_offset = max(self.start_offset, self.batches.next_first_offset(complete_until))
            gaps = self._active_gaps()
            if gaps is not None:
                self.start_offset = min(gaps.start_offset, self.start_offset)
        else:
            self.start_offset = max(self.start_offset, complete_until + 1)
        self.batches.remove_until(complete_until)
        self.delivery_complete_count -= count
        return True

    def _can_advance(self) -> bool:
        batch = self.batches.floor(self.start_offset)
        if batch is None:  # nothing is in flight, or a gap is at the start
            return False
        state = batch.whole or batch.offsets.get(self.start_offset)
        return state is None or state.is_complete

    def _complete_until(self) -> tuple[int | None, int]:
        gaps = self._active_gaps()
        until, count = None, 0
        for batch in self.batches:
            if gaps is not None and batch.last_offset >= gaps.start_offset:
                break
            for first, last, state in batch.parts():
                if not state.is_complete:
                    return until, count
                until = last
                count += self._count(first, last)
        return until, count

    def _count(self, first: int, last: int) -> int:
        return max(0, last - max(self.start_offset, first) + 1)

    def _start_is_within(self, batch: InFlightBatch) -> bool:
        return batch.first_offset < self.start_offset <= batch.last_offset

    def _active_gaps(self) -> Gaps | None:
        gaps = self._gaps
        return gaps if gaps is not None and gaps.end_offset == self.end_offset else None

    def _move_gaps(self, offset: int) -> None:
        gaps = self._active_gaps()
        if gaps is not None and offset <= gaps.end_offset:
            gaps.start_offset = offset
        else:
            self._gaps = None
