"""Checks of the records in a section, without creating objects.

`walk` is the hot loop: it returns the range of timestamps, or None for the general path. That is `record.read_buffer`,
or for a compressed section that keeps its format `skim_stream`: Kafka's reader that skips keys, values and headers
(`PartialDefaultRecord`) and does not compare a record's length with its content.
"""

from collections.abc import Iterator

import msgspec

from sluice.protocol.errors import ErrorCode

from .batch import BatchHeader
from .invalid import BrokenStream, InvalidRecords
from .record import (
    VarintError,
    ensure_header_count,
    ensure_header_name,
    ensure_stream_ended,
    read_stream_size,
    read_varint,
    read_varlong,
    record_timestamp,
    summary,
)

_INT64_MAX = 2**63 - 1
# Slices of fewer records take as long as their walk.
_WORTHWHILE = 4
# The bytes of encoded offset deltas.
_SHORT_OFFSETS = (bytes(range(0, 128, 2)),)
_LONG_OFFSETS = (bytes(range(128, 256, 2)) * 128, b"".join(bytes((high,)) * 64 for high in range(128)))
# Encoded timestamp deltas of one byte; the deltas plus _BIAS.
_SHORT_DELTAS = bytes(range(128))
_BIAS = 64
_BIASED = bytes(_BIAS + (byte >> 1 ^ -(byte & 1)) for byte in _SHORT_DELTAS) + bytes(128)


def walk(section: bytes, count: int, *, null_keys: bool) -> tuple[int, int] | None:
    """Return the lowest and highest timestamp delta of `count` valid records with offset deltas 0, 1, 2, ...

    None: `section` may not be such records. Short varints are inlined, because calls would dominate the cost; indexing
    a memoryview would take twice as long.
    """
    position = done = 0
    lowest, highest = _INT64_MAX, -_INT64_MAX
    stretch = 1
    try:
        while done < count:
            for index in range(done, min(done + stretch, count)):
                start = position
                byte = section[position]
                if byte & 1:  # negative, here and below: zigzag has the sign in the lowest bit
                    return None
                if byte < 128:
                    end = position + 1 + (byte >> 1)
                    position += 2  # also skips the attributes
                else:
                    second = section[position + 1]
                    if second < 128:
                        end = position + 2 + (second << 6 | (byte & 127) >> 1)
                        position += 3
                    else:
                        size, position = read_varint(section, position)
                        end = position + size
                        position += 1
                delta = section[position]
                if delta < 128:
                    position += 1
                    delta = ~(delta >> 1) if delta & 1 else delta >> 1
                else:
                    delta, position = read_varlong(section, position)
                if delta > highest:
                    highest = delta
                if delta < lowest:
                    lowest = delta
                if index < 64:
                    if section[position] != index + index:
                        return None
                    position += 1
                elif index < 8192:
                    if section[position] != (index << 1 & 127 | 128) or section[position + 1] != index >> 6:
                        return None
                    position += 2
                else:
                    offset_delta, position = read_varint(section, position)
                    if offset_delta != index:
                        return None
                byte = section[position]
                if byte == 1:  # a null key
                    if not null_keys:
                        return None
                    position += 1
                elif byte & 1:
                    return None
                elif byte < 128:
                    position += 1 + (byte >> 1)
                else:
                    size, position = read_varint(section, position)
                    position += size
                byte = section[position]
                if byte & 1:
                    if byte != 1:
                        return None
                    position += 1
                elif byte < 128:
                    position += 1 + (byte >> 1)
                else:
                    second = section[position + 1]
                    if second < 128:
                        position += 2 + (second << 6 | (byte & 127) >> 1)
                    else:
                        size, position = read_varint(section, position)
                        position += size
                if section[position]:
                    position = _walk_headers(section, position)
                else:
                    position += 1
                if position != end:
                    return None
            done = index + 1
            if done == count:
                break
            deltas = _deltas_of_alike(section, start, position, done, count)
            # Random sizes hardly take longer.
            stretch = 1 if len(deltas) >= _WORTHWHILE else 2 * stretch
            if deltas:
                done += len(deltas)
                position += len(deltas) * (position - start)
                different = {*deltas}
                lowest = min(lowest, min(different) - _BIAS)
                highest = max(highest, max(different) - _BIAS)
    except (IndexError, VarintError):
        return None
    return (lowest, highest) if position == len(section) else None


def _deltas_of_alike(section: bytes, start: int, end: int, index: int, count: int) -> bytes:
    """Return the timestamp deltas plus _BIAS of the next records, from `index` on, that are alike.

    Alike: the lengths of the record from `start` to `end`, a short delta, no headers. A slice has one byte of each.
    """
    stride = end - start
    most = min(count - index, (len(section) - end) // stride, (64 if index < 64 else 8192) - index)
    if most <= 0 or index == 64 or section[start] != section[end]:
        return b""
    delta_at = read_varint(section, start)[1] + 1
    if section[delta_at] > 127:
        return b""
    offset_bytes = _SHORT_OFFSETS if index < 64 else _LONG_OFFSETS
    key_at = delta_at + 1 + len(offset_bytes)
    key_bytes, key_from = read_varint(section, key_at)
    value_at = key_from + max(key_bytes, 0)
    value_bytes, value_from = read_varint(section, value_at)
    if value_from + max(value_bytes, 0) != end - 1:
        return b""
    for at in (*range(start, delta_at - 1), *range(key_at, key_from), *range(value_at, value_from), end - 1):
        column, constant = section[at + stride : at + most * stride + 1 : stride], section[at : at + 1]
        if column != constant * most:
            most -= len(column.lstrip(constant))
    for at, offsets in enumerate(offset_bytes, delta_at + 1):
        if section[at + stride : at + most * stride + 1 : stride] != offsets[index : index + most]:
            return b""
    deltas = section[delta_at + stride : delta_at + most * stride + 1 : stride]
    if not deltas.isascii():
        deltas = deltas[: most - len(deltas.lstrip(_SHORT_DELTAS))]
    return deltas.translate(_BIASED)


def _walk_headers(section: bytes, position: int) -> int:
    count, position = read_varint(section, position)
    if not 0 <= count <= len(section) - position:
        return -1
    for _ in range(count):
        size, position = read_varint(section, position)
        if size < 0:
            return -1
        size, position = read_varint(section, position + size)
        if size > 0:
            position += size
    return position


class SkimmedRecord(msgspec.Struct, frozen=True, gc=False):
    offset: int
    timestamp: int
    key_bytes: int
    value_bytes: int

    @property
    def has_key(self) -> bool:
        return self.key_bytes >= 0

    def __str__(self) -> str:
        return f"PartialDefault{summary(self.offset, self.timestamp, self.key_bytes, self.value_bytes)}"


def skim_stream(
    section: bytes, failure: BrokenStream | None, header: BatchHeader, most_record_bytes: int | None = None
) -> Iterator[SkimmedRecord]:
    """Yield the records of a compressed section without their content.

    Raises InvalidRecords where Kafka's skipping reader throws.
    """
    if failure is not None:
        section = section[: len(section) // failure.read_bytes * failure.read_bytes]
    position = 0
    for left in reversed(range(header.record_count)):
        _, position = read_stream_size(section, position, failure, most_record_bytes)
        try:
            timestamp_delta, position = read_varlong(section, position + 1)
            offset_delta, position = read_varint(section, position)
            key_bytes, position = read_varint(section, position)
            position = _skip(section, position, key_bytes)
            value_bytes, position = read_varint(section, position)
            position = _skip(section, position, value_bytes)
            count, position = read_varint(section, position)
            ensure_header_count(count)
            for _ in range(count):
                name_bytes, position = read_varint(section, position)
                ensure_header_name(name_bytes)
                position = _skip(section, position, name_bytes)
                content_bytes, position = read_varint(section, position)
                position = _skip(section, position, content_bytes)
        except IndexError:
            raise failure or InvalidRecords(ErrorCode.INVALID_RECORD, "Found invalid record structure") from None
        except VarintError:
            raise InvalidRecords(ErrorCode.INVALID_RECORD, "Found invalid record structure") from None
        if not left:
            ensure_stream_ended(section, position, failure)
        yield SkimmedRecord(
            header.base_offset + offset_delta, record_timestamp(header, timestamp_delta), key_bytes, value_bytes
        )


def _skip(section: bytes, position: int, size: int) -> int:
    if size > len(section) - position:
        raise IndexError(position)
    return position + max(size, 0)
