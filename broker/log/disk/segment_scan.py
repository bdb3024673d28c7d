"""Validation of a segment's batches after a crash, which also rebuilds the index.

One long loop, because a start may have to scan gigabytes: with batches of 16 KiB, 1 GB takes half a second.
"""

from collections.abc import Callable
from typing import NamedTuple

from sluice.errors import SluiceError
from sluice.protocol.records import crc
from sluice.protocol.records.batch import ATTRIBUTES_AT, HEADER, HEADER_BYTES, LOG_OVERHEAD, NO_PRODUCER_ID, BatchHeader
from sluice.protocol.records.invalid import InvalidRecords

from .file_names import LOG
from .file_segment import MAX_RELATIVE_OFFSET, FileSegment
from .segment_index import SegmentIndex

_BUFFER_BYTES = 1024 * 1024  # fits into the processor's cache
_MAGIC = 2


class Listener(NamedTuple):
    producer_batch: Callable[[BatchHeader, memoryview], None]
    epoch: Callable[[int, int], None]


class Scanned(NamedTuple):
    """The valid part; `problem` is why it ends, or ""."""

    size: int
    next_offset: int
    problem: str


def scan(
    segment: FileSegment, position: int, trusted: int, index: SegmentIndex, interval: int, listener: Listener
) -> Scanned:
    """Validate batches from `position` on, checksums from offset `trusted` on; index one per `interval` bytes.

    Raises:
        SluiceError: The format is older than Kafka 0.11.
    """
    base, size = segment.base_offset, segment.size
    next_offset, latest_epoch = base, -1
    entry_at = index.last_position()
    max_timestamp, offset_of_max = index.last_time()
    unpack, checksum_of = HEADER.unpack_from, crc.crc32c
    buffer = bytearray(_BUFFER_BYTES)
    problem = ""
    while position < size and not problem:
        view = memoryview(buffer)
        got = min(segment.read_into(buffer, position), size - position)
        at = 0
        while got - at >= HEADER_BYTES:
            values = unpack(buffer, at)
            first_offset, length, epoch, magic, checksum, _, delta, _, timestamp, producer_id, _, _, _ = values
            batch_size = length + LOG_OVERHEAD
            end = at + batch_size
            if batch_size < HEADER_BYTES or position + end > size:
                problem = f"incomplete batch; expected {batch_size} bytes, got {size - position - at}"
                break
            if end > got:
                break
            last_offset = first_offset + delta
            relative_offset = last_offset - base
            if magic != _MAGIC:
                problem = _magic_problem(segment.path(LOG), magic, first_offset)
                break
            if first_offset < next_offset or delta < 0 or relative_offset > MAX_RELATIVE_OFFSET:
                problem = f"wrong base offset; expected at least {next_offset}, got {first_offset}"
                break
            if first_offset > next_offset and segment.offset_at(position + end) <= last_offset:
                problem = f"wrong base offset {first_offset}; the next batch begins before its end"
                break
            if last_offset >= trusted and checksum != checksum_of(view[at + ATTRIBUTES_AT : end]):
                problem = "checksum mismatch"
                break
            if producer_id != NO_PRODUCER_ID:
                try:
                    listener.producer_batch(BatchHeader(*values), view[at:end])
                except InvalidRecords as invalid:
                    problem = invalid.message
                    break
            if epoch > latest_epoch:
                latest_epoch = epoch
                listener.epoch(epoch, first_offset)
            if timestamp > max_timestamp:
                max_timestamp, offset_of_max = timestamp, relative_offset
            if position + at - entry_at > interval:
                entry_at = position + at
                index.append(relative_offset, entry_at, max_timestamp, offset_of_max)
            next_offset = last_offset + 1
            at = end
        position += at
        if not at and not problem:
            if got == size - position or got < HEADER_BYTES:
                problem = f"incomplete batch header; expected {HEADER_BYTES} bytes, got {got}"
            else:
                view.release()
                buffer = bytearray(length + LOG_OVERHEAD)  # for a larger batch
    return Scanned(position, next_offset, problem)


def _magic_problem(path: str, magic: int, offset: int) -> str:
    if magic in (0, 1):
        problem = f"unsupported format of offset {offset}, older than Kafka 0.11; expected magic {_MAGIC}, got {magic}"
        raise SluiceError(f"{path}: {problem}")
    return f"unsupported magic; expected {_MAGIC}, got {magic}"
