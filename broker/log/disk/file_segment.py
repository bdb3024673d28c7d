"""A stretch of one partition's log in a file, in Kafka's own format: batches one after the other, and two indexes.

Follows Kafka's LogSegment and FileRecords. Different on purpose: the indexes go to their files when they are needed
there (segment_index.py), and the file is open only while the segment is in use (open_files.py).

How to append and to read was measured (ext4, Python 3.11, microseconds for one batch of 200 bytes / 16 KiB / 1 MiB,
two rounds):
    os.pwrite                            0.8      5 to 6    280 to 320
    os.write                             0.9      6 to 7    276, once 4,600
    os.writev of 16 batches, each        0.2      4         280 to 310
    into a mapped, preallocated file     0.4      7, once 61    480
A mapping wins only for the smallest batches, makes the file longer than the log until it is cut, and kills the process
(SIGBUS) where a disk that is full should give an error. So: pwrite, at a position of ours, which also writes over what
a failed write left. Reads, MB/s sent to a socket for one second of CPU, in pieces of 1 MiB from the page cache:
    a mapping of just the piece, sent by reference       3,500 to 4,700
    one mapping of the file, sent by reference           3,600 to 3,800
    os.pread                                             2,400 to 3,000
    mapping with MAP_POPULATE                            2,200 to 2,700
    os.sendfile                                          1,400 to 2,000
A mapping costs 14 microseconds and more, though, a pread of 4 KiB one. So small reads are copied, large ones mapped.
"""

import os
from collections.abc import Iterator
from mmap import ALLOCATIONGRANULARITY, PROT_READ, mmap
from struct import Struct

from sluice.protocol.records.batch import HEADER_BYTES, LOG_OVERHEAD, BatchHeader, read_header

from .file_names import INDEX, LOG, TIME_INDEX, file_name
from .partition_directory import Place
from .segment_index import SegmentIndex

# Kafka's bounds: offsets relative to the segment and positions have four bytes.
MAX_RELATIVE_OFFSET = MAX_POSITION = 2**31 - 1
MAPPED_FROM_BYTES = 256 * 1024
# Base offset, length, last offset delta, greatest timestamp: what is looked at to go from one batch to the next.
_STEP = Struct(">qi11xi8xq")
# Two intervals of the index: of small batches, one read shows all that lie between two entries.
_SCAN_BYTES = 8192
_READ_AHEAD_BYTES = 1024 * 1024
_UNKNOWN = -2


class CorruptSegmentError(OSError):
    """There is something in the file that is no batch; it names the file and the position."""


class FileSegment:
    """See LogSegment."""

    __slots__ = (
        "_handle",
        "_index",
        "_max_timestamp",
        "_offset_of_max",
        "_place",
        "_since_index_entry",
        "base_offset",
        "capacity",
        "last_append_ms",
        "next_offset",
        "recently_used",
        "size",
        "suffix",
    )

    def __init__(self, place: Place, base_offset: int, next_offset: int, size: int, last_append_ms: int) -> None:
        self._place = place
        self.base_offset = base_offset
        self.next_offset = next_offset  # of one that was only found, where the next segment begins: there may be a gap
        self.size = size
        self.capacity = size  # nothing is appended to one that was only found
        self.last_append_ms = last_append_ms
        self.recently_used = False
        self.suffix = ""
        self._handle = -1
        self._index: SegmentIndex | None = None  # not loaded
        self._max_timestamp = _UNKNOWN
        self._offset_of_max = 0
        self._since_index_entry = 0

    @classmethod
    def create(cls, place: Place, base_offset: int, capacity: int, now_ms: int, suffix: str = "") -> "FileSegment":
        """A new, empty one for `capacity` bytes, with its files. Raises OSError."""
        self = cls(place, base_offset, base_offset, 0, now_ms)
        self.suffix = suffix
        self._index = SegmentIndex()
        self._max_timestamp = -1
        handle = os.open(self.path(LOG), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        self._opened(handle)
        self.save_index()
        self.accept(capacity)
        return self

    def path(self, kind: str) -> str:
        """Of its file of a kind, such as LOG."""
        return f"{self._place.path}/{file_name(self.base_offset, kind)}{self.suffix}"

    # Appending

    def accept(self, capacity: int) -> None:
        """Makes it the segment that is appended to."""
        self.capacity = min(capacity, MAX_POSITION)
        self._known_max_timestamp()

    def append(self, batch: memoryview | bytes, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
        """As LogSegment says. Raises OSError; then nothing has changed."""
        start = self.size
        size = len(batch)
        relative_offset = last_offset - self.base_offset
        index = self._index
        if index is None:
            index = self.index()
        if (
            start + size > self.capacity
            or relative_offset > MAX_RELATIVE_OFFSET
            or len(index) >= self._place.most_index_entries
        ):
            return False
        handle = self._handle
        if handle < 0:
            handle = self._open()
        self.recently_used = True
        try:
            if os.pwrite(handle, batch, start) != size:
                self._write_rest(handle, batch, start)
            if last_offset - self._place.recovery_point >= self._place.flush_messages - 1 and not self.suffix:
                self._place.flush_up_to(last_offset + 1, handle)
        except OSError:
            self._cut_back(handle)
            raise
        if self._place.failing:
            self._place.works_again()
        if max_timestamp > self._max_timestamp:
            self._max_timestamp, self._offset_of_max = max_timestamp, relative_offset
        if self._since_index_entry > self._place.index_interval_bytes:
            index.append(relative_offset, start, self._max_timestamp, self._offset_of_max)
            self._since_index_entry = 0
        self._since_index_entry += size
        self.size = start + size
        self.next_offset = last_offset + 1
        self.last_append_ms = now_ms
        return True

    def _write_rest(self, handle: int, batch: memoryview | bytes, start: int) -> None:
        """Writes all again: so the error comes that cut the first write short, a full disk for one."""
        done = 0
        while done < len(batch):
            done += os.pwrite(handle, memoryview(batch)[done:], start + done)

    def _cut_back(self, handle: int) -> None:
        try:
            os.ftruncate(handle, self.size)
        except OSError:
            return  # the next append writes over it, and a start cuts it off

    # Reading

    @property
    def max_timestamp(self) -> int:
        return self._known_max_timestamp()

    def _known_max_timestamp(self) -> int:
        if self._max_timestamp == _UNKNOWN:
            self._max_timestamp, self._offset_of_max = self.index().last_time()
            if self._handle < 0 and self.capacity == self.size:
                self._index = None  # retention asks each segment, and nobody reads from it
        return self._max_timestamp

    def largest_timestamp(self) -> int:
        known = self._known_max_timestamp()
        return known if known >= 0 else self.last_append_ms

    def span(self, offset: int, max_bytes: int, up_to_offset: int, at_least_one: bool) -> tuple[int, int, int]:
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
        """Where the first batch begins that ends at or after `offset`, and its first offset."""
        if offset < self.next_offset:
            earlier = self.index().position_before(offset - self.base_offset)
            for batch_offset, last_offset, position, _, _ in self._steps(earlier):
                if last_offset >= offset:
                    return position, batch_offset
        return self.size, self.next_offset

    def _steps(self, position: int) -> Iterator[tuple[int, int, int, int, int]]:
        """First and last offset, position, size and greatest timestamp of each batch from the one at `position` on."""
        chunk, chunk_at = b"", position
        while position < self.size:
            at = position - chunk_at
            if at + _STEP.size > len(chunk):
                chunk, chunk_at, at = self._read(position, min(_SCAN_BYTES, self.size - position)), position, 0
                if len(chunk) < HEADER_BYTES:
                    raise self._corrupt(position)
            batch_offset, length, last_offset_delta, max_timestamp = _STEP.unpack_from(chunk, at)
            size = length + LOG_OVERHEAD
            if size < HEADER_BYTES or position + size > self.size or last_offset_delta < 0:
                raise self._corrupt(position)
            yield batch_offset, batch_offset + last_offset_delta, position, size, max_timestamp
            position += size

    def slice(self, start: int, end: int) -> memoryview:
        """As LogSegment says. Raises OSError."""
        size = end - start
        if size < MAPPED_FROM_BYTES:
            return memoryview(self._read(start, size))
        before = start % ALLOCATIONGRANULARITY
        try:
            mapping = mmap(self._file(), size + before, prot=PROT_READ, offset=start - before)
        except ValueError:  # the file is shorter than it was
            raise self._corrupt(start) from None
        return memoryview(mapping)[before:]

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        position, _ = self._locate(offset)
        return self.batches_at(position)

    def batches_from_timestamp(self, timestamp: int, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        earliest = self.base_offset + self.index().offset_before_timestamp(timestamp)
        return self.batches(max(offset, earliest))

    def batches_at(self, position: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Batches in order, the first at `position`. Raises CorruptSegmentError where there is none."""
        while position < self.size:
            chunk = memoryview(self._read(position, min(_READ_AHEAD_BYTES, self.size - position)))
            at = 0
            while len(chunk) - at >= HEADER_BYTES:
                length = int.from_bytes(chunk[at + 8 : at + LOG_OVERHEAD], "big", signed=True)
                size = length + LOG_OVERHEAD
                if size < HEADER_BYTES or position + at + size > self.size:
                    raise self._corrupt(position + at)
                if at + size > len(chunk):
                    if at:
                        break
                    chunk = memoryview(self._read(position, size))
                yield read_header(chunk, at), chunk[at : at + size]
                at += size
            if not at:
                raise self._corrupt(position)
            position += at

    # What happens to it

    def truncate_to(self, offset: int) -> None:
        """As LogSegment says. Raises OSError. The file is replaced by a copy: what is cut off may be mapped."""
        position, _ = self._locate(offset)
        index = self.index()
        if position < self.size:
            self._copy_up_to(position)
        index.truncate_to(max(0, offset - self.base_offset))
        self.recovered(position, index)

    def recovered(self, size: int, index: SegmentIndex) -> None:
        """Takes `size` bytes for the whole of it, and looks at the batches behind the last entry of the index."""
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
        """An index of all batches, made anew. Raises CorruptSegmentError, OSError."""
        index = SegmentIndex()
        max_timestamp, offset_of_max, entry_at = -1, 0, 0
        for _, last_offset, position, _, timestamp in self._steps(0):
            relative_offset = last_offset - self.base_offset
            if timestamp > max_timestamp:
                max_timestamp, offset_of_max = timestamp, relative_offset
            if position - entry_at > self._place.index_interval_bytes:
                index.append(relative_offset, position, max_timestamp, offset_of_max)
                entry_at = position
        return index

    def filled(self) -> None:
        """Nothing is appended any more: the index says the greatest timestamp."""
        self.index().append_time(self._known_max_timestamp(), self._offset_of_max)

    def save_index(self) -> None:
        """Brings the files of the indexes up to date. Raises OSError."""
        if self._index is not None:
            if self._max_timestamp != _UNKNOWN:
                self._index.append_time(self._max_timestamp, self._offset_of_max)
            self._index.save(self.path(INDEX), self.path(TIME_INDEX))

    def index(self) -> SegmentIndex:
        """Loaded, or made again from the segment where the files cannot be right. Raises OSError."""
        if self._index is None:
            self._index = self._place.load_index(self)
        return self._index

    def duplicate_handle(self) -> int:
        """A file descriptor for someone else to flush and close."""
        return os.dup(self._file())

    def close_file(self) -> None:
        """Closes the file; an index that is not needed before the next use goes, too."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        if self.capacity == self.size:
            self._index = None

    def close(self) -> None:
        """The same, said by its owner."""
        self._place.open_files.closed(self)
        self.close_file()

    def _copy_up_to(self, position: int) -> None:
        path = self.path(LOG)
        copy = f"{path}.cleaned"  # what a start finds of it, it removes
        handle = os.open(copy, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            done = 0
            while done < position:
                data = self._read(done, min(_READ_AHEAD_BYTES, position - done))
                os.write(handle, data)
                done += len(data)
            os.replace(copy, path)
        except OSError:
            os.close(handle)
            raise
        self.close()
        self._opened(handle)

    def _read(self, position: int, size: int) -> bytes:
        data = os.pread(self._file(), size, position)
        if len(data) < size:
            raise self._corrupt(position + len(data))
        return data

    def _file(self) -> int:
        self.recently_used = True
        return self._handle if self._handle >= 0 else self._open()

    def _open(self) -> int:
        self._opened(os.open(self.path(LOG), os.O_RDWR))
        return self._handle

    def _opened(self, handle: int) -> None:
        self._handle = handle
        self._place.open_files.opened(self)

    def _corrupt(self, position: int) -> CorruptSegmentError:
        return CorruptSegmentError(None, f"{self.path(LOG)}: no batch at byte {position}")
