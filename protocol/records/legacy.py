"""Message sets, the formats before Kafka 0.11: magic 0, and magic 1 with a timestamp (KIP-32).

A compressed set is a message (the wrapper) whose value is a message set. Its offset is that of the last inner message;
inner offsets are relative in magic 1 (KIP-31), absolute in magic 0. As in Kafka (`LegacyRecord`,
`AbstractLegacyRecordBatch`), key and value are decoded on access, so errors in them appear only then.
"""

import struct
from binascii import crc32
from collections.abc import Iterable, Iterator

from sluice.protocol.errors import ErrorCode

from .batch import CODEC_MASK, CREATE_TIME, LOG_APPEND_TIME, LOG_APPEND_TIME_FLAG, NO_TIMESTAMP, NO_TIMESTAMP_TYPE
from .build import ensure_appendable
from .compression import MAX_SECTION_BYTES, NAMES, NONE, ZSTD, check_codec, compress, decompress
from .invalid import InvalidRecords
from .record import Record

LOG_OVERHEAD = 12
MAGIC_AT, ATTRIBUTES_AT, TIMESTAMP_AT, KEY_AT_V0, KEY_AT_V1 = 4, 5, 6, 6, 14  # positions from the CRC
SMALLEST_MESSAGE = 14  # magic 0, no key, no value
SMALLEST_MESSAGE_BYTES = LOG_OVERHEAD + SMALLEST_MESSAGE
_TIMESTAMP_TYPES = {NO_TIMESTAMP_TYPE: "NoTimestampType", CREATE_TIME: "CreateTime", LOG_APPEND_TIME: "LogAppendTime"}
_OFFSET_AND_SIZE = struct.Struct(">qi")


class Message:
    __slots__ = ("attributes", "body", "magic", "offset", "wrapper")

    def __init__(self, offset: int, body: memoryview, wrapper: "Message | None" = None) -> None:
        self.offset = offset
        self.body = body
        self.magic: int = _signed_byte(body[MAGIC_AT])
        self.attributes: int = body[ATTRIBUTES_AT]
        self.wrapper = wrapper if self.magic == 1 else None

    @property
    def compression(self) -> int:
        return check_codec(self.attributes & CODEC_MASK)

    @property
    def timestamp_type(self) -> int:
        """The wrapper's timestamp type if there is one, as a broker updates only the wrapper."""
        if self.magic == 0:
            return NO_TIMESTAMP_TYPE
        attributes = self.attributes if self.wrapper is None else self.wrapper.attributes
        if self.wrapper is not None and self.wrapper.magic == 0:
            return NO_TIMESTAMP_TYPE
        return LOG_APPEND_TIME if attributes & LOG_APPEND_TIME_FLAG else CREATE_TIME

    @property
    def timestamp(self) -> int:
        if self.magic == 0:
            return NO_TIMESTAMP
        if self.wrapper is not None and self.timestamp_type == LOG_APPEND_TIME:
            return self.wrapper.timestamp
        return int.from_bytes(self._slice(TIMESTAMP_AT, 8), "big", signed=True)

    @property
    def crc(self) -> int:
        return int.from_bytes(self.body[:MAGIC_AT], "big")

    @property
    def computed_crc(self) -> int:
        return crc32(self.body[MAGIC_AT:])

    @property
    def has_key(self) -> bool:
        return self._size_at(self._key_at) >= 0

    @property
    def key(self) -> bytes | None:
        return self._sized_at(self._key_at)

    @property
    def value(self) -> bytes | None:
        return self._sized_at(self._key_at + 4 + max(0, self._size_at(self._key_at)))

    @property
    def _key_at(self) -> int:
        return KEY_AT_V0 if self.magic == 0 else KEY_AT_V1

    def ensure_valid(self) -> None:
        if self.crc != self.computed_crc:
            message = f"Record is corrupt (stored crc = {self.crc}, computed crc = {self.computed_crc})"
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, message)

    def record(self) -> Record:
        """Return the content. Raises InvalidRecords (UNKNOWN_SERVER_ERROR) if it is truncated."""
        return Record(self.offset, self.timestamp, self.key, self.value)

    def __str__(self) -> str:
        """Return Kafka's text; as in Kafka, a truncated record raises."""
        timestamp = f"{_TIMESTAMP_TYPES[self.timestamp_type]}={self.timestamp}, " if self.magic > 0 else ""
        sizes = f"key={len(self.key or b'')} bytes, value={len(self.value or b'')} bytes"
        attributes = f"attributes={_signed_byte(self.attributes)}, compression={NAMES[self.compression]}"
        flags = f"magic={self.magic}, {attributes}, crc={self.crc}"
        return f"LegacyRecordBatch(offset={self.offset}, Record({flags}, {timestamp}{sizes}))"

    def _sized_at(self, position: int) -> bytes | None:
        size = self._size_at(position)
        return None if size < 0 else bytes(self._slice(position + 4, size))

    def _size_at(self, position: int) -> int:
        return int.from_bytes(self._slice(position, 4), "big", signed=True)

    def _slice(self, position: int, size: int) -> memoryview:
        content = self.body[position : position + size]
        if len(content) < size:
            message = f"expected {size} bytes at {position}, got {len(content)} in a message of {len(self.body)} bytes"
            raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        return content


def _signed_byte(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def read_message(data: bytes | bytearray | memoryview) -> Message:
    return Message(int.from_bytes(data[:8], "big", signed=True), memoryview(data)[LOG_OVERHEAD:])


def iter_messages(outer: Message, limit_bytes: int = MAX_SECTION_BYTES) -> Iterator[Message]:
    """Yield `outer`, or its inner messages if it is compressed, with absolute offsets and unchecked checksums.

    Raises InvalidRecords where Kafka throws: before the first message, except if an inner message is compressed.
    """
    if outer.compression == NONE:
        return iter((outer,))
    return _iter_inner(outer, _read_inner(outer, limit_bytes))


def _iter_inner(wrapper: Message, inner: list[Message]) -> Iterator[Message]:
    base_offset = _base_offset(wrapper, inner[-1].offset)
    for message in inner:
        message.offset += base_offset
        if message.compression != NONE:
            raise InvalidRecords(ErrorCode.INVALID_RECORD, "Inner messages must not be compressed")
        yield message


def _base_offset(wrapper: Message, last_inner_offset: int) -> int:
    # Producers, such as librdkafka, send wrapper offset 0; then the inner offsets are absolute.
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0
    if wrapper.offset < last_inner_offset:
        message = f"wrapper offset '{wrapper.offset}' is less than the last inner message offset '{last_inner_offset}'"
        raise InvalidRecords(
            ErrorCode.INVALID_RECORD,
            f"Found invalid wrapper offset in compressed v1 message set, {message} and it is not zero.",
        )
    return wrapper.offset - last_inner_offset


def _read_inner(wrapper: Message, limit_bytes: int) -> list[Message]:
    if wrapper.compression == ZSTD:
        message = f"Invalid wrapper compressionType found in legacy deep record iterator {wrapper.magic}"
        raise InvalidRecords(ErrorCode.INVALID_RECORD, message)
    value = wrapper.value
    if value is None:
        message = f"Found invalid compressed record set with null value (magic = {wrapper.magic})"
        raise InvalidRecords(ErrorCode.INVALID_RECORD, message)
    section, failure = decompress(wrapper.compression, value, wrapper.magic, limit_bytes)
    inner = []
    view = memoryview(section)
    position = 0
    while len(view) - position >= LOG_OVERHEAD:
        offset, size = _OFFSET_AND_SIZE.unpack_from(view, position)
        if size < SMALLEST_MESSAGE:
            message = f"Record size is less than the minimum record overhead ({SMALLEST_MESSAGE})"
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, message)
        position += LOG_OVERHEAD
        if len(view) - position < size:
            break
        inner.append(Message(offset, view[position : position + size], wrapper))
        position += size
    if failure is not None:
        raise failure
    if not inner:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, "Found invalid compressed record set with no inner records")
    return inner


def build_message_set(
    records: Iterable[Record],
    magic: int,
    *,
    compression: int = NONE,
    level: int | None = None,
    timestamp_type: int = CREATE_TIME,
    log_append_time: int = NO_TIMESTAMP,
    base_offset: int | None = None,
) -> bytes:
    """Return a message set of `records` (absolute offsets, no headers), like Kafka's `MemoryRecordsBuilder`.

    Inner offsets are relative to `base_offset`, by default the first record's offset. With LOG_APPEND_TIME,
    `log_append_time` is the timestamp in ms of every message.
    """
    relative = magic == 1 and compression != NONE
    parts = []
    last: int | None = None
    max_timestamp = NO_TIMESTAMP
    for record in records:
        ensure_appendable(record, last)
        if base_offset is None:
            base_offset = record.offset
        timestamp = log_append_time if timestamp_type == LOG_APPEND_TIME else record.timestamp
        offset = record.offset - base_offset if relative else record.offset
        parts.append(encode_message(offset, magic, timestamp, record.key, record.value, timestamp_type=timestamp_type))
        if magic == 1:
            max_timestamp = max(max_timestamp, timestamp)
        last = record.offset
    content = b"".join(parts)
    if compression == NONE or last is None:
        return content
    value = compress(compression, content, magic, level)
    return encode_message(
        last, magic, max_timestamp, None, value, timestamp_type=timestamp_type, compression=compression
    )


def encode_message(
    offset: int,
    magic: int,
    timestamp: int,
    key: bytes | None,
    value: bytes | None,
    *,
    timestamp_type: int,
    compression: int = NONE,
) -> bytes:
    attributes = compression
    if magic == 1 and timestamp_type == LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_FLAG
    body = b"".join(
        (
            bytes((magic, attributes)),
            timestamp.to_bytes(8, "big", signed=True) if magic == 1 else b"",
            _encode_sized(key),
            _encode_sized(value),
        )
    )
    return _OFFSET_AND_SIZE.pack(offset, len(body) + MAGIC_AT) + crc32(body).to_bytes(4, "big") + body


def _encode_sized(content: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if content is None else len(content).to_bytes(4, "big") + content
