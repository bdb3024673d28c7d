"""The records of one batch as a consumer gets them, a few at a time. `take` is the hot loop of a consumer.

The records section is made `bytes` once, which for an uncompressed batch is one copy of all of it: bytes are indexed in
half the time that a memoryview takes, and their slices are what applications get, without another object in between.
Nothing is decoded before it is asked for.
"""

from struct import Struct

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import HEADER_BYTES, LOG_APPEND_TIME, BatchHeader
from sluice.protocol.records.compression import MAX_SECTION_BYTES, decompress
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import VarintError, read_varint, read_varlong

from .cluster import TopicPartition
from .consumer_record import ConsumerRecord, Header

_NULL = 1  # a length of -1
_CONTROL_KEY = Struct(">hh")
ABORT_MARKER = 0


class BatchRecords:
    """A batch of magic 2, and how far it was read."""

    __slots__ = ("_at", "_partition", "_section", "header", "left")

    def __init__(self, partition: TopicPartition, header: BatchHeader, batch: memoryview) -> None:
        """Decompresses. Raises InvalidRecords."""
        self._partition = partition
        self.header = header
        section, failure = decompress(header.compression, batch[HEADER_BYTES:], header.magic, MAX_SECTION_BYTES)
        if failure is not None:
            raise failure
        self._section = bytes(section)
        self._at = 0
        self.left = header.record_count

    def take(self, records: list[ConsumerRecord], most: int, first_offset: int) -> None:
        """Appends up to `most` records, none before `first_offset`. Raises InvalidRecords at one that cannot be read.

        One long loop with the short varints in line: calls are what it would cost. Keys and values that are as long as
        those before are not measured anew, where no headers follow.
        """
        section, position, header = self._section, self._at, self.header
        topic, partition = self._partition
        base_offset, base_timestamp, epoch = header.base_offset, header.base_timestamp, header.partition_leader_epoch
        timestamp_type = header.timestamp_type
        set_timestamp = header.max_timestamp if timestamp_type == LOG_APPEND_TIME else None
        append, record_of = records.append, ConsumerRecord
        left, room = self.left, most
        key_byte, key_skip, value_length, value_size = -1, 0, b"", 0  # of a record before, to compare
        key: bytes | None
        value: bytes | None
        try:
            while left and room:
                byte = section[position]
                if byte < 128:
                    position += 2  # past the attributes too
                    end = position - 1 + (byte >> 1)
                else:
                    second = section[position + 1]
                    if second < 128:
                        position += 3
                        end = position - 1 + (second << 6 | (byte & 127) >> 1)
                    else:
                        size, position = read_varint(section, position)
                        end = position + size
                        position += 1
                byte = section[position]
                if byte < 128:
                    position += 1
                    timestamp = base_timestamp + (byte >> 1 ^ -(byte & 1))
                elif (second := section[position + 1]) < 128:
                    position += 2
                    timestamp = base_timestamp + ((second << 6 | (byte & 127) >> 1) ^ -(byte & 1))
                else:
                    delta, position = read_varlong(section, position)
                    timestamp = base_timestamp + delta
                byte = section[position]
                if byte < 128:
                    position += 1
                    offset = base_offset + (byte >> 1)
                elif (second := section[position + 1]) < 128:  # of all records after the 64th
                    position += 2
                    offset = base_offset + (second << 6 | (byte & 127) >> 1)
                else:
                    delta, position = read_varint(section, position)
                    offset = base_offset + delta
                value_at = end - 1 - value_size
                if section[position] == key_byte and section[position + key_skip : value_at] == value_length:
                    # As long as those of the record before: then this is where they are.
                    key = None if key_byte == _NULL else section[position + 1 : position + key_skip]
                    value = section[value_at : end - 1]
                    position = end - 1
                else:
                    key_at = position
                    size, position = read_varint(section, position)
                    key = None if size < 0 else section[position : position + size]
                    position += max(size, 0)
                    length_at = position
                    size, position = read_varint(section, position)
                    if size < 0:
                        value = None
                    else:
                        value = section[position : position + size]
                        if section[key_at] < 128:
                            key_byte, key_skip = section[key_at], length_at - key_at
                            value_length, value_size = section[length_at:position], size
                        position += size
                if section[position]:
                    headers, position = _headers(section, position)
                else:
                    headers = ()
                    position += 1
                if position != end:
                    raise _not_readable(header, left)
                left -= 1
                if offset >= first_offset:
                    room -= 1
                    append(
                        record_of(
                            topic,
                            partition,
                            offset,
                            timestamp if set_timestamp is None else set_timestamp,
                            timestamp_type,
                            key,
                            value,
                            headers,
                            epoch,
                        )
                    )
        except (IndexError, VarintError):
            raise _not_readable(header, left) from None
        self._at, self.left = position, left

    def is_abort_marker(self) -> bool:
        """Of a control batch: whether its record says that a transaction was aborted."""
        records: list[ConsumerRecord] = []
        self.take(records, 1, self.header.base_offset)
        key = records[0].key if records else None
        return key is not None and len(key) >= _CONTROL_KEY.size and _CONTROL_KEY.unpack_from(key)[1] == ABORT_MARKER


def _headers(section: bytes, position: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(section, position)
    if count < 0:
        raise IndexError(position)
    headers: list[Header] = []
    for _ in range(count):
        size, position = read_varint(section, position)
        if size < 0:
            raise IndexError(position)
        name = str(section[position : position + size], "utf-8", "replace")
        size, position = read_varint(section, position + size)
        value = None if size < 0 else section[position : position + size]
        position += max(size, 0)
        headers.append((name, value))
    return tuple(headers), position


def _not_readable(header: BatchHeader, left: int) -> InvalidRecords:
    number = header.record_count - left
    return InvalidRecords(
        ErrorCode.INVALID_RECORD, f"record {number} of the batch at offset {header.base_offset} cannot be read"
    )
