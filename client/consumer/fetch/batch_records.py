"""The records of one batch as a consumer gets them, a few at a time. `take` is the hot loop of a consumer.

The records section is made `bytes` once, which for an uncompressed batch is one copy of all of it: bytes are indexed in
half the time that a memoryview takes, and their slices are what applications get, without another object in between.
Nothing is decoded before it is asked for.
"""

from struct import Struct, iter_unpack, unpack_from
from typing import NamedTuple

from sluice.client.consumer.record import ConsumerRecord, Header
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import HEADER_BYTES, LOG_APPEND_TIME, BatchHeader
from sluice.protocol.records.compression import MAX_SECTION_BYTES, decompress
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import VarintError, read_varint, read_varlong

_NULL = 1  # a length of -1
_STOP = b"\0"  # ends a varint that has not ended before
# How many records of one size in a row let others be expected, at first; and how many have to come then for that to be
# worth it.
_ALIKE, _WORTH_IT = 2, 10
# Of offset deltas of one byte and of two: what they are cut as; and the bits that say that a varint goes on, and
# what they are where it ends with its field. Longer ones are those of batches with more than 8192 records.
_OFFSET_CODES = {1: "B", 2: "H"}
_ENDS = {1: (0x80, 0), 2: (0x8080, 0x80)}
_CONTROL_KEY = Struct(">hh")
ABORT_MARKER = 0


class _Places(NamedTuple):
    """Where the fields of a record are in its section, without headers; and its key and value."""

    start: int
    timestamp_at: int
    offset_at: int
    key_at: int
    key: bytes | None
    value_at: int
    value: bytes
    end: int

    @property
    def layout(self) -> str:
        """For `struct`: length and attributes, timestamp, offset, length of the key, key, length of the value, value,
        and the count of headers.
        """
        key_bytes, value_bytes = len(self.key or b""), len(self.value)
        key_length = self.value_at - self.key_at - key_bytes
        value_length = self.end - 1 - value_bytes - self.value_at
        offset = _OFFSET_CODES[self.key_at - self.offset_at]
        return (
            f"<{self.timestamp_at - self.start}s{self.offset_at - self.timestamp_at}s{offset}{key_length}s{key_bytes}s"
            f"{value_length}s{value_bytes}sB"
        )


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

        One long loop with the short varints in line: calls are what it would cost. After some records of one size
        `_take_alike` goes on, for as long as they are.
        """
        section, position, header = self._section, self._at, self.header
        topic, partition = self._partition
        base_offset, base_timestamp, epoch = header.base_offset, header.base_timestamp, header.partition_leader_epoch
        timestamp_type = header.timestamp_type
        set_timestamp = header.max_timestamp if timestamp_type == LOG_APPEND_TIME else None
        append, record_of = records.append, ConsumerRecord
        left, room = self.left, most
        size_before, alike, enough = 0, 0, _ALIKE  # records of one size in a row, and how many have to be
        key: bytes | None
        value: bytes | None
        try:
            while left and room:
                start = position
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
                timestamp_at = position
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
                offset_at = position
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
                key_at = position
                byte = section[position]
                if byte == _NULL:
                    key = None
                    position += 1
                elif byte < 128 and not byte & 1:
                    position += 1 + (byte >> 1)
                    key = section[key_at + 1 : position]
                else:
                    size, position = read_varint(section, position)
                    key = None if size < 0 else section[position : position + size]
                    position += max(size, 0)
                value_at = position
                byte = section[position]
                if byte < 128 and not byte & 1:
                    position += 1 + (byte >> 1)
                    value = section[value_at + 1 : position]
                elif not byte & 1 and (second := section[position + 1]) < 128:
                    position += 2 + (second << 6 | (byte & 127) >> 1)
                    value = section[value_at + 2 : position]
                else:
                    size, position = read_varint(section, position)
                    value = None if size < 0 else section[position : position + size]
                    position += max(size, 0)
                if section[position]:
                    headers, position = _headers(section, position)
                else:
                    headers = ()
                    position += 1
                if position != end:
                    raise _not_readable(header, left)
                left -= 1
                if offset < first_offset:
                    continue
                room -= 1
                if set_timestamp is not None:
                    timestamp = set_timestamp
                append(record_of(topic, partition, offset, timestamp, timestamp_type, key, value, headers, epoch))
                size = end - start
                if size != size_before:
                    size_before, alike = size, 0
                    continue
                alike += 1
                if alike < enough or value is None or headers or key_at - offset_at not in _ENDS:
                    continue
                places = _Places(start, timestamp_at, offset_at, key_at, key, value_at, value, end)
                taken = self._take_alike(places, records, min(left, room), first_offset)
                left -= taken
                room -= taken
                position += taken * size
                alike = 0
                if taken < _WORTH_IT:
                    enough *= 4
        except (IndexError, VarintError):
            raise _not_readable(header, left) from None
        self._at, self.left = position, left

    def _take_alike(self, like: "_Places", records: list[ConsumerRecord], most: int, first_offset: int) -> int:
        """Appends up to `most` of the records behind one that was read, until one has its fields elsewhere; how many.

        One Struct cuts them all. The fields are where those of `like` are if the lengths are the same and the varints
        end where they should.
        """
        section, header = self._section, self.header
        topic, partition = self._partition
        base_offset, base_timestamp, epoch = header.base_offset, header.base_timestamp, header.partition_leader_epoch
        timestamp_type = header.timestamp_type
        is_set, timestamp = timestamp_type == LOG_APPEND_TIME, header.max_timestamp
        size = like.end - like.start
        count = min(most, (len(section) - like.end) // size)
        rest = memoryview(section)[like.end : like.end + count * size]
        layout, (continued, ends) = like.layout, _ENDS[like.key_at - like.offset_at]
        (same_head, _, _, same_key_length, _, same_value_length, _, _) = unpack_from(layout, section, like.start)
        stamp_before, has_key = b"", like.key is not None
        append, record_of, before = records.append, ConsumerRecord, len(records)
        for head, stamp, delta, key_length, key, value_length, value, headers in iter_unpack(layout, rest):
            if head != same_head or key_length != same_key_length or value_length != same_value_length or headers:
                break
            if stamp != stamp_before and not is_set:
                timestamp_delta, width = read_varlong(stamp + _STOP, 0)
                if width != len(stamp):
                    break
                timestamp, stamp_before = base_timestamp + timestamp_delta, stamp
            offset = base_offset + (delta >> 8 << 6 | (delta & 127) >> 1)
            if delta & continued != ends or offset < first_offset:
                break
            append(
                record_of(
                    topic, partition, offset, timestamp, timestamp_type, key if has_key else None, value, (), epoch
                )
            )
        return len(records) - before

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
