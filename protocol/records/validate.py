"""A broker's processing of produced records before the append: checks, offsets, and the topic's settings.

Follows `ProduceRequest.validateRecords`, `UnifiedLog.analyzeAndValidateRecords` and `LogValidator` (in
`log_validator.py`), in their order, so that of several errors the same one is returned. Different on purpose: the
stored format is always magic 2, and `deep_max_bytes` limits checks to the headers of larger batches: their records
would take Python about a microsecond each.

Fast path: a magic 2 batch that keeps its format is stamped in place. All others take the general path, `analyze` and
`LogValidator`, which also creates the error messages.
"""

import struct

from sluice.protocol.errors import ErrorCode

from . import crc
from .batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CRC_AT,
    CREATE_TIME,
    HEADER,
    HEADER_BYTES,
    LAST_OFFSET_DELTA_AT,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    PLACE,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    batch_bounds,
)
from .compression import NONE, ZSTD, check_codec, decompress
from .crc import Bytes
from .invalid import InvalidRecords, SectionTooLarge, TooManyRecords
from .legacy import SMALLEST_MESSAGE_BYTES, read_message
from .log_validator import CLIENT, Appendable, AppendConfig, LogValidator, ensure_short
from .lone_batch import PLAIN, SMALLEST_BATCH, lone_batches
from .walk import walk

_LENGTH_AND_MAGIC = struct.Struct(">8xi4xB")
NOT_PLAIN_ATTRIBUTES = ~CODEC_MASK
_UNUSUAL_ATTRIBUTES = NOT_PLAIN_ATTRIBUTES & ~TRANSACTIONAL_FLAG
_ONE_BATCH_VERSION = 3  # Produce versions that require one magic 2 batch per partition
ANY_CODEC_VERSION = 7  # Produce versions that allow zstd


def check_first_batch(data: Bytes) -> None:
    """Raise InvalidRecords if the first batch has an impossible size or magic: Kafka fails the whole request then."""
    size = len(data)
    if size <= HEADER_BYTES or _LENGTH_AND_MAGIC.unpack_from(data) != (size - LOG_OVERHEAD, 2):
        next(batch_bounds(data), None)


def check_produced(version: int, data: Bytes) -> None:
    if version < _ONE_BATCH_VERSION:
        return
    size = len(data)
    if size > HEADER_BYTES and _LENGTH_AND_MAGIC.unpack_from(data) == (size - LOG_OVERHEAD, 2):
        if version < ANY_CODEC_VERSION:
            _check_codec_known_to(version, data, 0)
        return
    batches = batch_bounds(data)
    first = next(batches, None)
    if first is None:
        raise _not_allowed(version, "must have at least one record batch per partition")
    if first[2] != 2:
        raise _not_allowed(version, "are only allowed to contain record batches with magic version 2")
    if version < ANY_CODEC_VERSION:
        _check_codec_known_to(version, data, first[0])
    if next(batches, None) is not None:
        raise _not_allowed(version, "are only allowed to contain exactly one record batch per partition")


def _check_codec_known_to(version: int, data: Bytes, position: int) -> None:
    if check_codec(data[position + ATTRIBUTES_AT + 1] & CODEC_MASK) == ZSTD:
        message = f"Produce requests with version {version} are not allowed to use ZStandard compression"
        raise InvalidRecords(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)


def _not_allowed(version: int, what: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, f"Produce requests with version {version} {what}")


def validate(
    data: Bytes, first_offset: int, now_ms: int, leader_epoch: int, config: AppendConfig, origin: int = CLIENT
) -> Appendable:
    """Validate `data`, the records of a request for one partition; return the batch to store from `first_offset` on.

    If the batch keeps its format, base offset and leader epoch are written to `data` itself, or to a copy if that is
    read-only. A truncated last batch is dropped; without a whole batch, nothing is appended, without an error.

    Raises:
        InvalidRecords: The records are invalid; `data` is unchanged.
    """
    usual = stamp_usual(data, first_offset, now_ms, leader_epoch, config, _UNUSUAL_ATTRIBUTES)
    if usual is not None:
        return usual
    _ensure_few(data, config)
    valid_bytes, codec = analyze(data, config, origin)
    view = memoryview(data)[:valid_bytes]
    if not valid_bytes:
        return Appendable(view, None, NO_TIMESTAMP, NO_TIMESTAMP)
    return LogValidator(view, codec, first_offset, now_ms, leader_epoch, config, origin).assign_offsets()


def stamp_usual(
    data: Bytes,
    first_offset: int,
    now_ms: int,
    leader_epoch: int,
    config: AppendConfig,
    unusual_attributes: int = NOT_PLAIN_ATTRIBUTES,
) -> Appendable | None:
    """Return the result of `validate` for a single magic 2 batch that keeps its format; None if unsure.

    With None, `data` is unchanged. By default, transactional batches return None too.
    """
    size = len(data)
    if size < SMALLEST_BATCH:
        return None
    view = data if type(data) is memoryview else memoryview(data)
    read, lone_place, lone_begin = lone_batches[size]
    place, magic, checksum, plain, base_timestamp, max_timestamp, producer_id, epoch, sequence, begin, last = read(view)
    if (
        magic != 2
        or size > config.max_message_bytes
        or config.timestamp_type != CREATE_TIME
        or (producer_id >= 0 and sequence < 0)
        or max_timestamp < NO_TIMESTAMP
        or max_timestamp - now_ms > config.after_max_ms
        or crc.crc32c(view[ATTRIBUTES_AT:]) != checksum
    ):
        return None
    length = size - LOG_OVERHEAD
    if (
        begin == lone_begin
        and place == lone_place
        and plain == PLAIN
        and not last
        and not config.compression  # None: the producer's; 0: no compression
        and not config.compacted
    ):
        lowest = highest = base_timestamp
        header = BatchHeader(
            first_offset, length, leader_epoch, 2, checksum, 0, 0, lowest, highest, producer_id, epoch, sequence, 1
        )
    else:
        header = BatchHeader(*HEADER.unpack_from(view))
        if header.length != length or header.base_offset or header.attributes & unusual_attributes:
            return None
        deltas = _timestamp_deltas(view, header, config)
        if deltas is None:
            return None
        lowest, highest = base_timestamp + deltas[0], base_timestamp + deltas[1]
        header.base_offset = first_offset
        header.partition_leader_epoch = leader_epoch
    if max_timestamp != highest or now_ms - lowest > config.before_max_ms:
        return None
    if view.readonly:
        view = memoryview(bytearray(view))
    PLACE.pack_into(view, 0, first_offset, length, leader_epoch)
    return Appendable(view, header, max_timestamp, NO_TIMESTAMP)


def _timestamp_deltas(view: memoryview, header: BatchHeader, config: AppendConfig) -> tuple[int, int] | None:
    """Return the lowest and highest timestamp delta of valid records (for a large batch, by its header), or None.

    None: use the general path.
    """
    codec, count = header.compression, header.record_count
    if (
        (config.compression is not None and config.compression != codec)
        or count <= 0
        or header.last_offset_delta + 1 != count
    ):
        return None
    last_delta = header.max_timestamp - header.base_timestamp
    deep_max_bytes = None if config.compacted else config.deep_max_bytes
    if deep_max_bytes is None:
        ensure_short(header, config)
    section: Bytes = view[HEADER_BYTES:]
    if codec != NONE:
        if config.max_decompressed_bytes is not None:
            return None
        limit_bytes = config.max_section_bytes if deep_max_bytes is None else deep_max_bytes
        try:
            section, failure = decompress(codec, section, 2, limit_bytes)
        except SectionTooLarge:
            if deep_max_bytes is None:
                raise
            return min(0, last_delta), last_delta
        if failure is not None:
            return None
    elif deep_max_bytes is not None and len(section) > deep_max_bytes:
        return min(0, last_delta), last_delta
    return walk(bytes(section), count, null_keys=not config.compacted)


def _ensure_few(data: Bytes, config: AppendConfig) -> None:
    size = len(data)
    if size > config.max_records * SMALLEST_MESSAGE_BYTES and _LENGTH_AND_MAGIC.unpack_from(data) != (
        size - LOG_OVERHEAD,
        2,
    ):
        raise TooManyRecords(config.max_records)


def analyze(data: Bytes, config: AppendConfig, origin: int) -> tuple[int, int]:
    """Return the size of the whole batches in `data`, and their codec (`UnifiedLog.analyzeAndValidateRecords`).

    Raises:
        InvalidRecords: The first batch with an invalid base offset, size or checksum.
    """
    valid_bytes, codec = 0, NONE
    view = memoryview(data)
    for position, size, magic in batch_bounds(data):
        batch = view[position : position + size]
        if magic == 2:
            batch_codec = _analyze_batch(batch, config, origin)
        else:
            message = read_message(batch)
            _ensure_size(size, config)
            if message.crc != message.computed_crc:
                raise _corrupt(message.crc, config)
            batch_codec = message.compression
        if batch_codec != NONE:
            codec = batch_codec
        valid_bytes += size
    return valid_bytes, codec


def _analyze_batch(batch: memoryview, config: AppendConfig, origin: int) -> int:
    base_offset = int.from_bytes(batch[:8], "big", signed=True)
    if origin == CLIENT and base_offset != 0:
        message = f"The baseOffset of the record batch in the append to {config.partition} should be 0"
        raise InvalidRecords(ErrorCode.INVALID_RECORD, f"{message}, but it is {base_offset}")
    if len(batch) < LAST_OFFSET_DELTA_AT + 4:  # Kafka reads the last offset before it checks the size
        raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, f"a batch of {len(batch)} bytes has no last offset delta")
    _ensure_size(len(batch), config)
    stored = int.from_bytes(batch[CRC_AT:ATTRIBUTES_AT], "big")
    if len(batch) < HEADER_BYTES or stored != crc.crc32c(batch[ATTRIBUTES_AT:]):
        raise _corrupt(stored, config)
    return check_codec(batch[ATTRIBUTES_AT + 1] & CODEC_MASK)


def _ensure_size(size: int, config: AppendConfig) -> None:
    if size > config.max_message_bytes:
        message = f"The record batch size in the append to {config.partition} is {size} bytes"
        limit = config.max_message_bytes
        raise InvalidRecords(
            ErrorCode.MESSAGE_TOO_LARGE, f"{message} which exceeds the maximum configured value of {limit}."
        )


def _corrupt(stored: int, config: AppendConfig) -> InvalidRecords:
    message = f"Record is corrupt (stored crc = {stored}) in topic partition {config.partition}."
    return InvalidRecords(ErrorCode.CORRUPT_MESSAGE, message)
