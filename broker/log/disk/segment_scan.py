"""Reads a segment from some position on, as after a crash: which batches are right, and an index of them.

It is one long loop over one buffer, because it may have to go over gigabytes before a broker is there: for batches of
16 KiB a GB takes about half a second, half of it the checksums.
"""

import os
from collections.abc import Callable
from typing import NamedTuple

from sluice.errors import SluiceError
from sluice.protocol.records import crc
from sluice.protocol.records.batch import ATTRIBUTES_AT, HEADER, HEADER_BYTES, LOG_OVERHEAD, NO_PRODUCER_ID, BatchHeader
from sluice.protocol.records.invalid import InvalidRecords

from .file_segment import MAX_RELATIVE_OFFSET, FileSegment
from .segment_index import SegmentIndex

_BUFFER_BYTES = 1024 * 1024  # what a processor's cache has room for
_MAGIC = 2


class Listener(NamedTuple):
    """Who is told what was found: batches of producers, and the beginnings of leader epochs."""

    producer_batch: Callable[[BatchHeader, memoryview], None]
    epoch: Callable[[int, int], None]


class Scanned(NamedTuple):
    """How far the segment is right: up to which byte, and which offset follows; `problem` is "" where that is all."""

    size: int
    next_offset: int
    problem: str


def scan(
    segment: FileSegment, position: int, trusted: int, index: SegmentIndex, interval: int, listener: Listener
) -> Scanned:
    """Goes over the batches from `position` on, and adds to `index` an entry for every `interval` bytes.

    Checksums are those of batches that reach `trusted` or later offsets. Raises OSError; SluiceError for messages of a
    Kafka before 0.11.
    """
    handle = segment.duplicate_handle()
    try:
        return _scan(segment, handle, position, trusted, index, interval, listener)
    finally:
        os.close(handle)


def _scan(
    segment: FileSegment,
    handle: int,
    position: int,
    trusted: int,
    index: SegmentIndex,
    interval: int,
    listener: Listener,
) -> Scanned:
    base, size = segment.base_offset, segment.size
    next_offset, latest_epoch = base, -1
    entry_at = index.last_position()
    max_timestamp, offset_of_max = index.last_time()
    unpack, checksum_of = HEADER.unpack_from, crc.crc32c
    buffer = bytearray(_BUFFER_BYTES)
    problem = ""
    while position < size and not problem:
        view = memoryview(buffer)
        got = min(os.preadv(handle, [buffer], position), size - position)
        at = 0
        while got - at >= HEADER_BYTES:
            values = unpack(buffer, at)
            first_offset, length, epoch, magic, checksum, _, delta, _, timestamp, producer_id, _, _, _ = values
            batch_size = length + LOG_OVERHEAD
            end = at + batch_size
            if batch_size < HEADER_BYTES or position + end > size:
                problem = f"a batch of {batch_size} bytes, of which {size - position - at} are there"
                break
            if end > got:
                break
            last_offset = first_offset + delta
            relative_offset = last_offset - base
            if magic != _MAGIC:
                problem = _of_magic(magic, first_offset)
                break
            if first_offset < next_offset or delta < 0 or relative_offset > MAX_RELATIVE_OFFSET:
                problem = f"offset {first_offset} where {next_offset} or more was due"
                break
            if last_offset >= trusted and checksum != checksum_of(view[at + ATTRIBUTES_AT : end]):
                problem = "the checksum is not right"
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
                problem = f"{got} bytes, which hold no batch"
            else:
                view.release()
                buffer = bytearray(length + LOG_OVERHEAD)  # of a batch larger than the others
    return Scanned(position, next_offset, problem)


def _of_magic(magic: int, offset: int) -> str:
    if magic in (0, 1):
        raise SluiceError(f"offset {offset} has messages of a Kafka before 0.11, which are not read")
    return f"magic {magic}"
