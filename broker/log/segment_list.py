"""The ordered segments of one log, and searches in them: Kafka's LogSegments and LocalLog.read."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from sluice.protocol.records.batch import BatchHeader
from sluice.protocol.records.record import iter_records

from .log_results import LogRead, TimestampOffset
from .log_storage import LogSegment


def largest_timestamp(parts: Sequence[LogSegment]) -> int:
    """Return the greatest record timestamp (ms), or the time of the last append if none has one."""
    known = max(part.max_timestamp for part in parts)
    return known if known >= 0 else parts[-1].last_append_ms


class WholeSegment(NamedTuple):
    """A segment as Kafka has it, which ends at segment.bytes or segment.ms; in memory, it can have several parts."""

    parts: Sequence[LogSegment]
    end_offset: int  # of the active one, the log end offset; else the next one's base
    is_active: bool

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def largest_timestamp(self) -> int:
        return largest_timestamp(self.parts)

    def offset_for_timestamp(
        self, timestamp: int, start_offset: int, most_record_bytes: int | None
    ) -> TimestampOffset | None:
        for part in self.parts:
            for header, batch in part.batches_from_timestamp(timestamp, start_offset):
                if header.max_timestamp >= timestamp:
                    for record in iter_records(batch, most_record_bytes=most_record_bytes):
                        if record.timestamp >= timestamp and record.offset >= start_offset:
                            return TimestampOffset(record.timestamp, record.offset, header.partition_leader_epoch)
        return None


class SegmentList:
    """Segments, oldest first; the last is active. Reads require one."""

    def __init__(self, segments: Sequence[LogSegment] = ()) -> None:
        self.ordered = list(segments)
        self._base_offsets = [segment.base_offset for segment in segments]

    # Reading

    def read(self, offset: int, max_bytes: int, up_to_offset: int, min_one_batch: bool) -> LogRead:
        if offset < self._base_offsets[-1]:
            return self._read_on(offset, max_bytes, up_to_offset, min_one_batch)
        # Consumers that keep up read from the last segment.
        segment = self.ordered[-1]
        start, end, next_offset = segment.span(offset, max_bytes, up_to_offset, min_one_batch)
        if start == end:
            return LogRead([], 0, offset)
        return LogRead([segment.slice(start, end)], end - start, next_offset)

    def _read_on(self, offset: int, max_bytes: int, up_to_offset: int, min_one_batch: bool) -> LogRead:
        parts: list[memoryview] = []
        size, next_offset = 0, offset
        for segment, start, end, end_offset in self._spans(offset, max_bytes, up_to_offset, min_one_batch):
            parts.append(segment.slice(start, end))
            size += end - start
            next_offset = end_offset
        return LogRead(parts, size, next_offset)

    def size_available(self, offset: int, max_bytes: int, up_to_offset: int, min_one_batch: bool) -> int:
        return sum(end - start for _, start, end, _ in self._spans(offset, max_bytes, up_to_offset, min_one_batch))

    def bytes_between(self, offset: int, up_to_offset: int, at_most: int) -> int:
        if offset >= self._base_offsets[-1]:  # the common case, as in `read`
            segment = self.ordered[-1]
            start, end, _ = segment.span(offset, segment.size, up_to_offset, False)
            return min(end - start, at_most)
        size = 0
        for segment in islice(self.ordered, max(0, bisect_right(self._base_offsets, offset) - 1), None):
            start, end, _ = segment.span(max(offset, segment.base_offset), segment.size, up_to_offset, False)
            size += end - start
            if size >= at_most or end < segment.size:
                break
        return min(size, at_most)

    def _spans(
        self, offset: int, max_bytes: int, up_to_offset: int, min_one_batch: bool
    ) -> Iterator[tuple[LogSegment, int, int, int]]:
        """Yield segment, start, end and the offset after it, for each segment with bytes to read."""
        size = 0
        for segment in islice(self.ordered, bisect_right(self._base_offsets, offset) - 1, None):
            at_least_one = min_one_batch and not size
            start, end, next_offset = segment.span(offset, max_bytes - size, up_to_offset, at_least_one)
            if start < end:
                size += end - start
                yield segment, start, end, next_offset
            if end < segment.size:
                break

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        for segment in self.ordered:
            if segment.next_offset > offset:
                yield from segment.batches(offset)

    def offset_for_timestamp(
        self, timestamp: int, start_offset: int, end_offset: int, most_record_bytes: int | None = None
    ) -> TimestampOffset | None:
        """Return the first match from `start_offset` on, in the first segment that reaches the timestamp, or None.

        Deleted records count until their segment is removed: as in Kafka, no later segment is searched. See
        `iter_records` for `most_record_bytes`.

        Raises:
            InvalidRecords: Unreadable records.
            OSError: The disk fails.
        """
        for segment in self.whole(end_offset):
            if segment.largest_timestamp() >= timestamp:
                return segment.offset_for_timestamp(timestamp, start_offset, most_record_bytes)
        return None

    def max_timestamp_offset(self, most_record_bytes: int | None = None) -> TimestampOffset | None:
        """Return the first record with the greatest timestamp, deleted or not; raise as `offset_for_timestamp`."""
        segment = max(self.with_records(), key=lambda segment: segment.max_timestamp, default=None)
        if segment is None:
            return None
        timestamp = segment.max_timestamp
        for header, batch in segment.batches_from_timestamp(timestamp, segment.base_offset):
            if header.max_timestamp == timestamp:
                for record in iter_records(batch, most_record_bytes=most_record_bytes):
                    if record.timestamp == timestamp:
                        return TimestampOffset(timestamp, record.offset, header.partition_leader_epoch)
        return None

    def with_records(self) -> list[LogSegment]:
        return [segment for segment in self.ordered if segment.size > 0]

    def whole(self, end_offset: int) -> Iterator[WholeSegment]:
        first, last = 0, len(self.ordered)
        for index in range(1, last + 1):
            if index == last or not self.ordered[index].continues:
                end = end_offset if index == last else self._base_offsets[index]
                yield WholeSegment(self.ordered[first:index], end, index == last)
                first = index

    def active_parts(self) -> Sequence[LogSegment]:
        """Return the parts of the active segment; none without segments."""
        first = len(self.ordered) - 1
        while first > 0 and self.ordered[first].continues:
            first -= 1
        return self.ordered[max(first, 0) :]

    def before(self, offset: int) -> Sequence[LogSegment]:
        return self.ordered[: bisect_left(self._base_offsets, offset)]

    def end_of_oldest(self, log_end_offset: int) -> int:
        return self._base_offsets[1] if len(self._base_offsets) > 1 else log_end_offset

    # Changing

    def append(self, segment: LogSegment) -> None:
        self.ordered.append(segment)
        self._base_offsets.append(segment.base_offset)

    def drop_oldest(self) -> None:
        del self.ordered[0]
        del self._base_offsets[0]

    def pop_from(self, offset: int) -> LogSegment | None:
        if not self._base_offsets or self._base_offsets[-1] < offset:
            return None
        del self._base_offsets[-1]
        return self.ordered.pop()

    def has_group(self, group: Sequence[LogSegment]) -> bool:
        """Return whether these segments are still consecutive and before the active one."""
        first, end = self._index_range(group)
        return end < len(self.ordered) and self.ordered[first:end] == list(group)

    def end_of_group(self, group: Sequence[LogSegment]) -> int:
        return self._base_offsets[self._index_range(group)[1]]

    def replace_group(self, group: Sequence[LogSegment], by: LogSegment) -> None:
        first, end = self._index_range(group)
        self.ordered[first:end] = [by]
        self._base_offsets[first:end] = [by.base_offset]

    def _index_range(self, group: Sequence[LogSegment]) -> tuple[int, int]:
        first = bisect_left(self._base_offsets, group[0].base_offset)
        return first, first + len(group)
