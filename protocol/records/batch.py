"""Magic 2 record batches: header, boundaries in a buffer, checksum (`DefaultRecordBatch`).

Layout: base offset, length of the rest, partition leader epoch, magic, CRC-32C of the rest, attributes, last offset
delta, base and max timestamp, producer id and epoch, base sequence, record count, records (compressed as one section).
Positions are in bytes from the start of the buffer that is passed in.
"""

import struct
from collections.abc import Iterator

import msgspec

from sluice.protocol.errors import ErrorCode

from . import crc
from .crc import Bytes
from .invalid import InvalidRecords

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
# Base offset, length, partition leader epoch: not in the checksum, so the broker may set them.
PLACE = struct.Struct(">qii")
LOG_OVERHEAD = 12  # base offset and length, which the length does not include
MAGIC_AT, CRC_AT, ATTRIBUTES_AT, LAST_OFFSET_DELTA_AT, MAX_TIMESTAMP_AT = 16, 17, 21, 23, 35
LARGEST_MAGIC = 2

CODEC_MASK, LOG_APPEND_TIME_FLAG, TRANSACTIONAL_FLAG, CONTROL_FLAG, DELETE_HORIZON_FLAG = 0x07, 0x08, 0x10, 0x20, 0x40
NO_TIMESTAMP_TYPE, CREATE_TIME, LOG_APPEND_TIME = -1, 0, 1
NO_TIMESTAMP = NO_PRODUCER_ID = NO_PRODUCER_EPOCH = NO_SEQUENCE = NO_LEADER_EPOCH = -1

_SMALLEST_RECORD = 14  # that of magic 0; Kafka's minimum for every length
_INT32_MAX = 2**31 - 1


class BatchHeader(msgspec.Struct, gc=False):
    """The header fields of one batch, in wire order. `length` is the batch's size less 12 bytes."""

    base_offset: int
    length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_in_bytes(self) -> int:
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def compression(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_FLAG else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_FLAG != 0

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        last = self.base_sequence + self.last_offset_delta
        return last if last <= _INT32_MAX else add_to_sequence(self.base_sequence, self.last_offset_delta)


def add_to_sequence(sequence: int, increment: int) -> int:
    return sequence + increment if sequence <= _INT32_MAX - increment else increment - (_INT32_MAX - sequence) - 1


def read_header(data: Bytes, position: int = 0) -> BatchHeader:
    """Return a magic 2 header without checking the checksum.

    Raises:
        InvalidRecords: CORRUPT_MESSAGE if fewer than 61 bytes remain, or the header specifies a smaller size.
    """
    if len(data) - position < HEADER_BYTES:
        raise InvalidRecords(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record batch is corrupt (expected a header of {HEADER_BYTES} bytes, got {len(data) - position})",
        )
    header = BatchHeader(*HEADER.unpack_from(data, position))
    if header.size_in_bytes < HEADER_BYTES:
        raise _smaller_than_header(header.size_in_bytes)
    return header


def batch_bounds(data: Bytes) -> Iterator[tuple[int, int, int]]:
    """Yield position, size in bytes and magic of each batch or message in `data` (`ByteBufferLogInputStream`).

    A truncated last batch is left out.

    Raises:
        InvalidRecords: CORRUPT_MESSAGE for an invalid length or magic.
    """
    position, end = 0, len(data)
    while end - position >= LOG_OVERHEAD:
        length = int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        if length < _SMALLEST_RECORD:
            message = f"Record size {length} is less than the minimum record overhead ({_SMALLEST_RECORD})"
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, message)
        if end - position <= MAGIC_AT:
            return
        magic = data[position + MAGIC_AT]
        if magic > LARGEST_MAGIC:
            message = f"Invalid magic found in record: {magic - 256 if magic > 127 else magic}"
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, message)
        size = length + LOG_OVERHEAD
        if end - position < size:
            return
        yield position, size, magic
        position += size


def iter_batches(data: Bytes) -> Iterator[tuple[int, BatchHeader]]:
    for position, _, _ in batch_bounds(data):
        yield position, read_header(data, position)


def ensure_valid(batch: memoryview) -> None:
    """Raise InvalidRecords (CORRUPT_MESSAGE) unless the checksum of `batch`, one whole magic 2 batch, is correct."""
    if len(batch) < HEADER_BYTES:
        raise _smaller_than_header(len(batch))
    stored = int.from_bytes(batch[CRC_AT:ATTRIBUTES_AT], "big")
    computed = crc.crc32c(batch[ATTRIBUTES_AT:])
    if stored != computed:
        message = f"Record is corrupt (stored crc = {stored}, computed crc = {computed})"
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, message)


def _smaller_than_header(size: int) -> InvalidRecords:
    message = f"the size {size} is smaller than the minimum allowed overhead {HEADER_BYTES}"
    return InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"Record batch is corrupt ({message})")
