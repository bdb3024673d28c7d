"""A log segment in a file, in Kafka's format: consecutive batches and two indexes.

Follows Kafka's LogSegment. Different on purpose: the indexes are saved only when needed (segment_index.py).

Appends use os.pwrite, which also overwrites the remains of a failed write. Measured on ext4, os.write is not faster,
and a mapping only for batches of 200 bytes (0.4 instead of 0.8 us). A mapping makes the file longer than the log, and
with it, a full disk kills the process (SIGBUS).
"""

import logging
import os
from collections.abc import Iterator

from sluice.protocol.records.batch import BatchHeader

from .file_names import INDEX, LOG, TIME_INDEX
from .file_records import FileRecords
from .partition_directory import PartitionDirectory
from .segment_index import CorruptIndexError, SegmentIndex

log = logging.getLogger("sluice.broker")

# Kafka's bounds: relative offsets and positions have four bytes.
MAX_RELATIVE_OFFSET = MAX_POSITION = 2**31 - 1
_UNKNOWN = -2


class FileSegment(FileRecords):
    continues = False

    def __init__(
        self,
        directory: PartitionDirectory,
        base_offset: int,
        next_offset: int,
        size: int,
        last_append_ms: int,
        suffix: str = "",
    ) -> None:
        super().__init__(directory, base_offset, size, suffix)
        self.next_offset = next_offset  # of an existing one: the next segment's base
        self.capacity = size  # an existing one accepts nothing before `accept`
        self.last_append_ms = last_append_ms
        self._checked_bytes = 0  # headers of an existing file are checked when they are read first
        self._index: SegmentIndex | None = None  # None: not loaded
        self._max_timestamp = _UNKNOWN
        self._offset_of_max = 0
        self._since_index_entry = 0

    @classmethod
    def create(
        cls, directory: PartitionDirectory, base_offset: int, capacity: int, now_ms: int, suffix: str = ""
    ) -> "FileSegment":
        self = cls(directory, base_offset, base_offset, 0, now_ms, suffix)
        self._index = SegmentIndex()
        self._max_timestamp = -1
        self._checked_bytes = MAX_POSITION
        handle = os.open(self.path(LOG), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        self._opened(handle)
        self.save_index()
        self.accept(capacity)
        return self

    # Appending

    def accept(self, capacity: int) -> None:
        self.capacity = min(capacity, MAX_POSITION)
        self._known_max_timestamp()

    def append(self, batch: memoryview | bytes, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        start = self.size
        size = len(batch)
        relative_offset = last_offset - self.base_offset
        index = self._index
        if index is None:
            index = self.index()
        if (
            start + size > self.capacity
            or relative_offset > MAX_RELATIVE_OFFSET
            or len(index) >= self._directory.most_index_entries
        ):
            return False
        handle = self._handle
        if handle < 0:
            handle = self._open()
        try:
            if os.pwrite(handle, batch, start) != size:
                self._write_rest(handle, batch, start)
            if last_offset - self._directory.recovery_point >= self._directory.flush_messages - 1 and not self.suffix:
                self._directory.flush_up_to(last_offset + 1, handle)
        except OSError:
            self._cut_back(handle)
            raise
        if self._directory.failing:
            self._directory.writes_recovered()
        if max_timestamp > self._max_timestamp:
            self._max_timestamp, self._offset_of_max = max_timestamp, relative_offset
        if self._since_index_entry > self._directory.index_interval_bytes:
            index.append(relative_offset, start, self._max_timestamp, self._offset_of_max)
            self._since_index_entry = 0
        self._since_index_entry += size
        self.size = start + size
        self.next_offset = last_offset + 1
        self.last_append_ms = now_ms
        return True

    # Reading

    @property
    def max_timestamp(self) -> int:
        return self._known_max_timestamp()

    def _known_max_timestamp(self) -> int:
        if self._max_timestamp == _UNKNOWN:
            self._max_timestamp, self._offset_of_max = self.index().last_time()
            if self._handle < 0 and self.capacity == self.size:
                self._index = None  # only retention needed it, which checks every segment
        return self._max_timestamp

    def span(self, offset: int, max_bytes: int, up_to_offset: int, at_least_one: bool) -> tuple[int, int, int]:
        start, end, next_offset = self._span(offset, max_bytes, up_to_offset, at_least_one)
        if start < end and self._checked_bytes < end:
            return self._checked_span(offset, start, end, next_offset)
        return start, end, next_offset

    def _checked_span(self, offset: int, start: int, end: int, next_offset: int) -> tuple[int, int, int]:
        """End the span before a batch with a wrong base offset, which no checksum covers.

        Of two batches that overlap, the earlier one is wrong if there is a gap before it.
        """
        begin = min(start, self.index().position_before(offset - self.base_offset))
        is_continued = begin <= self._checked_bytes
        before, before_offset, is_after_gap, expected = begin, -1, False, -1
        skipped = -1  # position of a wrong batch before the span
        for first, last, position, _, _ in self._steps(begin):
            if first < expected or last >= self.next_offset:
                wrong = (before, before_offset) if is_after_gap and first < expected else (position, expected)
                if wrong[0] > start:
                    return start, *wrong
                if wrong[0] == start:
                    raise self._corrupt(start)
                skipped = wrong[0]
            elif is_continued:
                self._checked_bytes = max(self._checked_bytes, position)
            if position == start and skipped >= 0 and not first <= offset:
                raise self._corrupt(skipped)
            if position >= end:
                break
            before, before_offset, is_after_gap, expected = position, expected, -1 < expected < first, last + 1
        return start, end, next_offset

    def _span(self, offset: int, max_bytes: int, up_to_offset: int, at_least_one: bool) -> tuple[int, int, int]:
        start, first_offset = self._locate(offset)
        end, next_offset = (
            (self.size, self.next_offset) if up_to_offset >= self.next_offset else self._locate(up_to_offset)
        )
        if end <= start:
            return start, start, first_offset
        if end - start <= max_bytes:
            return start, end, next_offset
        limit = start + max_bytes
        for batch_offset, _, position, size, _ in self._steps(max(start, self.index().position_up_to(limit))):
            if position + size > limit and not (at_least_one and position == start):
                return start, position, batch_offset
        return start, self.size, self.next_offset

    def _locate(self, offset: int) -> tuple[int, int]:
        if offset < self.next_offset:
            earlier = self.index().position_before(offset - self.base_offset)
            for batch_offset, last_offset, position, _, _ in self._steps(earlier):
                if last_offset >= offset:
                    return position, batch_offset
        return self.size, self.next_offset

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        position, _ = self._locate(offset)
        return self.batches_at(position)

    def batches_from_timestamp(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        earliest = self.base_offset + self.index().offset_before_timestamp(timestamp)
        return self.batches(max(offset, earliest))

    # Changes

    def truncate_to(self, offset: int) -> None:
        """Replace the file by a truncated copy, because readers may map the old one."""
        position, _ = self._locate(offset)
        index = self.index()
        if position < self.size:
            self._copy_up_to(position)
        index.truncate_to(max(0, offset - self.base_offset))
        self.recovered(position, index)

    def recovered(self, size: int, index: SegmentIndex) -> None:
        self.size = size
        self._index = index
        self._max_timestamp, self._offset_of_max = index.last_time()
        self.next_offset = self.base_offset
        position = index.last_position()
        self._since_index_entry = size - position
        for _, last_offset, _, _, max_timestamp in self._steps(position):
            self.next_offset = last_offset + 1
            if max_timestamp > self._max_timestamp:
                self._max_timestamp, self._offset_of_max = max_timestamp, last_offset - self.base_offset

    def rebuilt_index(self) -> SegmentIndex:
        index = SegmentIndex()
        max_timestamp, offset_of_max, entry_at = -1, 0, 0
        for _, last_offset, position, _, timestamp in self._steps(0):
            relative_offset = last_offset - self.base_offset
            if timestamp > max_timestamp:
                max_timestamp, offset_of_max = timestamp, relative_offset
            if position - entry_at > self._directory.index_interval_bytes:
                index.append(relative_offset, position, max_timestamp, offset_of_max)
                entry_at = position
        return index

    def filled(self) -> None:
        self.index().append_time(self._known_max_timestamp(), self._offset_of_max)

    def save_index(self) -> None:
        if self._index is not None:
            if self._max_timestamp != _UNKNOWN:
                self._index.append_time(self._max_timestamp, self._offset_of_max)
            self._index.save(self.path(INDEX), self.path(TIME_INDEX))

    def index(self) -> SegmentIndex:
        if self._index is None:
            self._index = self._load_index()
        return self._index

    def _load_index(self) -> SegmentIndex:
        path, time_path = self.path(INDEX), self.path(TIME_INDEX)
        try:
            return SegmentIndex.load(path, time_path, self.size)
        except CorruptIndexError as error:
            log.warning("rebuilding the index", extra={"reason": str(error)})
        except FileNotFoundError as error:
            log.warning("rebuilding the index", extra={"reason": f"{error.filename}: missing file"})
        index = self.rebuilt_index()
        index.save(path, time_path)
        return index

    def close_file(self) -> None:
        super().close_file()
        if self.capacity == self.size:
            self._index = None
