"""The batches of one segment in its file, in Kafka's format: Kafka's FileRecords.

Small reads are copied, large ones mapped: a mapping costs at least 14 us, a pread of 4 KiB only one. Measured on ext4
in pieces of 1 MiB from the page cache, in MB sent to a socket per second of CPU:

    a mapping of the piece    3,500 to 4,700
    os.pread                  2,400 to 3,000
    os.sendfile               1,400 to 2,000
"""

import os
from collections.abc import Iterator
from mmap import ALLOCATIONGRANULARITY, PROT_READ, mmap
from struct import Struct

from sluice.protocol.records.batch import HEADER_BYTES, LOG_OVERHEAD, BatchHeader, read_header

from .file_names import LOG, file_name
from .partition_directory import PartitionDirectory

MAPPED_FROM_BYTES = 256 * 1024
# Base offset, length, magic, last offset delta, greatest timestamp.
_STEP = Struct(">qi4xb6xi8xq")
_MAGIC = 2
# Two index intervals: one read covers all small batches between two entries.
_SCAN_BYTES = 8192
_READ_AHEAD_BYTES = 1024 * 1024


class CorruptSegmentError(OSError):
    """Bytes in the file that are not a batch."""


class FileRecords:
    """The first `size` bytes of a file, which are whole batches."""

    def __init__(self, directory: PartitionDirectory, base_offset: int, size: int, suffix: str = "") -> None:
        self._directory = directory
        self.base_offset = base_offset
        self.size = size
        self.suffix = suffix
        self._handle = -1

    def path(self, kind: str) -> str:
        return f"{self._directory.path}/{file_name(self.base_offset, kind)}{self.suffix}"

    def _steps(self, position: int) -> Iterator[tuple[int, int, int, int, int]]:
        """Iterate over (first offset, last offset, position, size, greatest timestamp)."""
        chunk, chunk_at = b"", position
        while position < self.size:
            at = position - chunk_at
            if at + _STEP.size > len(chunk):
                chunk, chunk_at, at = self._read(position, min(_SCAN_BYTES, self.size - position)), position, 0
                if len(chunk) < HEADER_BYTES:
                    raise self._corrupt(position)
            batch_offset, length, magic, last_offset_delta, max_timestamp = _STEP.unpack_from(chunk, at)
            size = length + LOG_OVERHEAD
            if size < HEADER_BYTES or position + size > self.size or magic != _MAGIC or last_offset_delta < 0:
                raise self._corrupt(position)
            yield batch_offset, batch_offset + last_offset_delta, position, size, max_timestamp
            position += size

    def _write_rest(self, handle: int, batch: memoryview | bytes, start: int) -> None:
        """Write the rest after a short write; this raises its cause, such as a full disk."""
        done = 0
        while done < len(batch):
            done += os.pwrite(handle, memoryview(batch)[done:], start + done)

    def _cut_back(self, handle: int) -> None:
        try:
            os.ftruncate(handle, self.size)
        except OSError:
            return  # the next append overwrites the rest, or the next start removes it

    def slice(self, start: int, end: int) -> memoryview:
        size = end - start
        if size < MAPPED_FROM_BYTES:
            return memoryview(self._read(start, size))
        before = start % ALLOCATIONGRANULARITY
        try:
            mapping = mmap(self._file(), size + before, prot=PROT_READ, offset=start - before)
        except ValueError:  # the file was shortened
            raise self._corrupt(start) from None
        return memoryview(mapping)[before:]

    def batches_at(self, position: int) -> Iterator[tuple[BatchHeader, memoryview]]:
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

    def read_into(self, buffer: bytearray, position: int) -> int:
        return os.preadv(self._file(), [buffer], position)

    def offset_at(self, position: int) -> int:
        """Return the base offset of the batch at a position; the greatest number at the end."""
        return int.from_bytes(os.pread(self._file(), 8, position), signed=True) if position < self.size else 2**63 - 1

    def duplicate_handle(self) -> int:
        return os.dup(self._file())

    def close_file(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def close(self) -> None:
        self._directory.open_files.closed(self)
        self.close_file()

    def _copy_up_to(self, position: int) -> None:
        path = self.path(LOG)
        copy = f"{path}.cleaned"  # the next start removes the rest of a failed copy
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
        return self._handle if self._handle >= 0 else self._open()

    def _open(self) -> int:
        self._opened(os.open(self.path(LOG), os.O_RDWR))
        return self._handle

    def _opened(self, handle: int) -> None:
        self._handle = handle
        self._directory.open_files.opened(self)

    def _corrupt(self, position: int) -> CorruptSegmentError:
        return CorruptSegmentError(None, f"{self.path(LOG)}: no batch at byte {position}")
