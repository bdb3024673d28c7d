"""The records inside a magic 2 batch, read exactly like Kafka (`DefaultRecord`, `DefaultRecordBatch`).

Kafka has two readers with different errors: for uncompressed batches from the batch's buffer, for compressed ones from
a stream. `iter_records` follows both, including their messages. `walk.py` is the fast path for valid records.
"""

from collections.abc import Iterator

import msgspec

from sluice.protocol.errors import ErrorCode

from .batch import HEADER_BYTES, LOG_APPEND_TIME, BatchHeader, read_header
from .compression import MAX_SECTION_BYTES, NONE, decompress
from .crc import Bytes
from .invalid import BrokenStream, InvalidRecords

Header = tuple[str, bytes | None]

_PREMATURE_END = "Incorrect declared batch size, premature EOF reached"
_REMAINING = "Incorrect declared batch size, records still remaining in file"
_INVALID_STRUCTURE = "Found invalid record structure"


class Record(msgspec.Struct, frozen=True, gc=False):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()

    @property
    def has_key(self) -> bool:
        return self.key is not None

    def __str__(self) -> str:
        return f"Default{summary(self.offset, self.timestamp, len(self.key or b''), len(self.value or b''))}"


def summary(offset: int, timestamp: int, key_bytes: int, value_bytes: int) -> str:
    """Return Kafka's text for a record, which producers receive."""
    return f"Record(offset={offset}, timestamp={timestamp}, key={key_bytes} bytes, value={value_bytes} bytes)"


class VarintError(ValueError):
    """A varint longer than the longest of its type."""


def iter_records(
    batch: Bytes, limit_bytes: int = MAX_SECTION_BYTES, most_record_bytes: int | None = None
) -> Iterator[Record]:
    """Yield the records of `batch`, one whole magic 2 batch, without checking its checksum.

    `most_record_bytes` limits the records of a compressed batch.

    Raises:
        InvalidRecords: At the record where Kafka's reader throws, after the records before it.
        SectionTooLarge: The section decompresses to more than `limit_bytes`.
    """
    header = read_header(batch)
    if header.record_count == 0:
        return iter(())
    if header.record_count < 0:
        message = f"Found invalid record count {header.record_count} in magic v2 batch"
        raise InvalidRecords(ErrorCode.INVALID_RECORD, message)
    view = memoryview(batch)[HEADER_BYTES : header.size_in_bytes]
    section, failure = decompress(header.compression, view, header.magic, limit_bytes)
    if header.compression == NONE:
        return read_buffer(bytes(section), header)
    return read_stream(bytes(section), failure, header, most_record_bytes)


def control_type(batch: Bytes) -> int | None:
    """Return the type of a control batch; None if it has no marker."""
    marker = next(iter_records(batch), None)
    return None if marker is None or marker.key is None else int.from_bytes(marker.key[2:4], signed=True)


def read_buffer(section: bytes, header: BatchHeader) -> Iterator[Record]:
    position, end = 0, len(section)
    for left in reversed(range(header.record_count)):
        try:
            size, position = read_varint(section, position)
        except IndexError:
            raise InvalidRecords(ErrorCode.INVALID_RECORD, _PREMATURE_END) from None
        except VarintError as error:  # Kafka does not catch this one
            raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from None
        if end - position < size:
            message = f"but instead the buffer has only {end - position} remaining bytes."
            raise _invalid_size(f"expected {size} bytes in record payload, {message}")
        record, position = _read_body(section, position, size, header)
        if not left and position < end:
            raise InvalidRecords(ErrorCode.INVALID_RECORD, _REMAINING)
        yield record


def read_stream(
    section: bytes, failure: BrokenStream | None, header: BatchHeader, most_record_bytes: int | None = None
) -> Iterator[Record]:
    if failure is not None:
        section = section[: _read_before(section, failure.read_bytes)]
    position, end = 0, len(section)
    for left in reversed(range(header.record_count)):
        size, position = read_stream_size(section, position, failure, most_record_bytes)
        if end - position < size:
            raise failure or _invalid_size(
                f"expected {size} bytes in record payload, but the record payload reached EOF."
            )
        record, _ = _read_body(section[position : position + size], 0, size, header)
        position += size
        if not left:
            ensure_stream_ended(section, position, failure)
        yield record


def _read_before(section: bytes, read_bytes: int) -> int:
    """Return how many bytes of a corrupt `section` reach a reader that reads `read_bytes` at a time.

    The rest of a record's body, if it is longer, is read at once.
    """
    position = given = reading = 0
    try:
        while reading <= len(section):
            given = reading
            if position >= reading:
                reading += read_bytes
                continue
            size, position = read_varint(section, position)
            position += max(size, 0)
            if position > reading:
                reading += max(read_bytes, position - reading)
    except (IndexError, VarintError):
        pass
    return given


def read_stream_size(
    section: bytes, position: int, failure: BrokenStream | None, most_record_bytes: int | None
) -> tuple[int, int]:
    try:
        size, position = read_varint(section, position)
    except IndexError:
        raise failure or InvalidRecords(ErrorCode.INVALID_RECORD, _PREMATURE_END) from None
    except VarintError:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, _PREMATURE_END) from None
    if size < 0:
        raise _invalid_size(f"{size} is negative.")
    if most_record_bytes is not None and size > most_record_bytes:
        raise _invalid_size(f"{size} bytes exceed max.decompressed.message.bytes ({most_record_bytes}).")
    return size, position


def ensure_stream_ended(section: bytes, position: int, failure: BrokenStream | None) -> None:
    if position < len(section):
        raise InvalidRecords(ErrorCode.INVALID_RECORD, _REMAINING)
    if failure is not None:
        raise failure


def _read_body(buffer: bytes, position: int, size: int, header: BatchHeader) -> tuple[Record, int]:
    start = position
    try:
        buffer[position]  # raises IndexError without attributes; their value is unused
        timestamp_delta, position = read_varlong(buffer, position + 1)
        offset_delta, position = read_varint(buffer, position)
        key, position = _read_bytes(buffer, position)
        value, position = _read_bytes(buffer, position)
        headers, position = _read_headers(buffer, position)
    except (IndexError, VarintError):
        raise InvalidRecords(ErrorCode.INVALID_RECORD, _INVALID_STRUCTURE) from None
    if position - start != size:
        raise _invalid_size(f"expected to read {size} bytes in record payload, but instead read {position - start}")
    timestamp = record_timestamp(header, timestamp_delta)
    return Record(header.base_offset + offset_delta, timestamp, key, value, headers), position


def record_timestamp(header: BatchHeader, timestamp_delta: int) -> int:
    if header.timestamp_type == LOG_APPEND_TIME:
        return header.max_timestamp
    return int64(header.base_timestamp + timestamp_delta)


def _read_headers(buffer: bytes, position: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(buffer, position)
    ensure_header_count(count)
    if count > len(buffer) - position:
        message = f"{count} is larger than the remaining size of the buffer"
        raise InvalidRecords(ErrorCode.INVALID_RECORD, f"Found invalid number of record headers. {message}")
    headers = []
    for _ in range(count):
        ensure_header_name(read_varint(buffer, position)[0])
        name, position = _read_bytes(buffer, position)
        value, position = _read_bytes(buffer, position)
        headers.append((str(name or b"", "utf-8", "replace"), value))
    return tuple(headers), position


def ensure_header_count(count: int) -> None:
    if count < 0:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, f"Found invalid number of record headers {count}")


def ensure_header_name(size: int) -> None:
    if size < 0:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, f"Invalid negative header key size {size}")


def _read_bytes(buffer: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(buffer, position)
    if size < 0:
        return None, position
    if size > len(buffer) - position:
        raise IndexError(position)
    return buffer[position : position + size], position + size


def read_varint(buffer: bytes, position: int) -> tuple[int, int]:
    byte = buffer[position]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position + 1
    return _read_long(buffer, position, 32, "Varint is too long, the most significant bit in the 5th byte is set")


def read_varlong(buffer: bytes, position: int) -> tuple[int, int]:
    byte = buffer[position]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), position + 1
    return _read_long(buffer, position, 64, "Varlong is too long, most significant bit in the 10th byte is set")


def _read_long(buffer: bytes, position: int, bits: int, too_long: str) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift >= bits:
            raise VarintError(f"{too_long}, converted value: {value:x}")
    value &= (1 << bits) - 1
    return value >> 1 ^ -(value & 1), position


def int64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _invalid_size(what: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, f"Invalid record size: {what}")
