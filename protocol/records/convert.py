"""Down-conversion of stored batches to message sets, for consumers before Kafka 0.11 (`RecordsUtil.downConvert`)."""

from collections.abc import Iterable

from sluice.protocol.errors import ErrorCode

from .batch import batch_bounds, read_header
from .compression import NONE, ZSTD, check_codec
from .crc import Bytes
from .invalid import InvalidRecords
from .legacy import build_message_set, iter_messages, read_message
from .record import Record, iter_records


def down_convert(data: Bytes, to_magic: int, first_offset: int) -> bytes:
    """Return the batches of `data` as message sets of `to_magic`, 0 or 1; older ones are copied.

    Control batches are left out; so are records of uncompressed batches before `first_offset`, the fetch offset.

    Raises:
        InvalidRecords: The records are corrupt, or compressed with zstd (UNSUPPORTED_COMPRESSION_TYPE).
    """
    view = memoryview(data)
    parts = []
    for position, size, magic in batch_bounds(view):
        batch = view[position : position + size]
        parts.append(
            _convert_batch(batch, to_magic, first_offset)
            if magic == 2
            else _convert_messages(batch, to_magic, first_offset)
        )
    return b"".join(parts)


def _convert_batch(batch: memoryview, to_magic: int, first_offset: int) -> bytes:
    header = read_header(batch)
    if header.is_control:
        return b""
    codec, timestamp_type = _readable(header.compression), header.timestamp_type
    # With LogAppendTime, the batch's maximum timestamp is that of all its records.
    return _build(iter_records(batch), to_magic, first_offset, codec, timestamp_type, header.max_timestamp)


def _convert_messages(batch: memoryview, to_magic: int, first_offset: int) -> bytes:
    outer = read_message(batch)
    codec = _readable(outer.compression)
    if outer.magic <= to_magic:
        return bytes(batch)
    records = (message.record() for message in iter_messages(outer))
    return _build(records, to_magic, first_offset, codec, outer.timestamp_type, outer.timestamp)


def _readable(codec: int) -> int:
    if check_codec(codec) == ZSTD:
        message = "Down-conversion of zstandard-compressed batches is not supported"
        raise InvalidRecords(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)
    return codec


def _build(
    records: Iterable[Record], to_magic: int, first_offset: int, codec: int, timestamp_type: int, log_append_time: int
) -> bytes:
    return build_message_set(
        (record for record in records if codec != NONE or record.offset >= first_offset),
        to_magic,
        compression=codec,
        timestamp_type=timestamp_type,
        log_append_time=log_append_time,
    )
