"""Building of record batches and message sets, byte for byte like Kafka's `MemoryRecordsBuilder`.

The bytes of compressed sections depend on the codec library; only their content is the same.
"""

import struct
from collections.abc import Iterable

from sluice.protocol.errors import ErrorCode

from . import crc
from .batch import (
    ATTRIBUTES_AT,
    CONTROL_FLAG,
    CRC_AT,
    CREATE_TIME,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
)
from .compression import NONE, compress
from .invalid import InvalidRecords
from .record import Record

ABORT, COMMIT = 0, 1  # control record types of transaction markers (KIP-98)
_MAGIC = 2
_LARGEST_OFFSET_DELTA = 2**31 - 1  # int32 on the wire
_CONTROL_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
_VARINTS = tuple(bytes((value,)) for value in range(128))


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    last_offset: int | None = None,
    compression: int = NONE,
    level: int | None = None,
    timestamp_type: int = CREATE_TIME,
    log_append_time: int = NO_TIMESTAMP,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """Return one magic 2 batch of `records`, whose absolute offsets increase from `base_offset`.

    `last_offset` overrides the last record's offset, as after compaction. `log_append_time` is the maximum timestamp in
    ms with LOG_APPEND_TIME or without records. Raises InvalidRecords.
    """
    base_timestamp = delete_horizon_ms
    _ensure_producer_state(producer_id, producer_epoch, base_sequence, transactional=transactional, control=control)
    max_timestamp = NO_TIMESTAMP
    last: int | None = None
    parts = []
    for record in records:
        ensure_appendable(record, last)
        if record.offset - base_offset > _LARGEST_OFFSET_DELTA:
            message = f"base offset: {base_offset}, last offset: {record.offset}"
            raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, f"Maximum offset delta exceeded, {message}")
        if base_timestamp is None:
            base_timestamp = record.timestamp
        parts.append(encode_record(record, record.offset - base_offset, record.timestamp - base_timestamp))
        max_timestamp = max(max_timestamp, record.timestamp)
        last = record.offset
    if timestamp_type == LOG_APPEND_TIME or last is None:
        max_timestamp = log_append_time
    if last_offset is None:
        last_offset = base_offset - 1 if last is None else last
    section = compress(compression, b"".join(parts), _MAGIC, level) if parts else b""
    batch = bytearray(HEADER_BYTES + len(section))
    batch[HEADER_BYTES:] = section
    attributes = (
        compression
        | (LOG_APPEND_TIME_FLAG if timestamp_type == LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_FLAG if transactional else 0)
        | (CONTROL_FLAG if control else 0)
        | (DELETE_HORIZON_FLAG if delete_horizon_ms is not None else 0)
    )
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LOG_OVERHEAD,
        partition_leader_epoch,
        _MAGIC,
        0,
        attributes,
        last_offset - base_offset,
        NO_TIMESTAMP if base_timestamp is None else base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(parts),
    )
    stamp_checksum(batch)
    return bytes(batch)


def build_transaction_marker(
    control_type: int,
    *,
    offset: int,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    record = transaction_marker(control_type, offset=offset, timestamp=timestamp, coordinator_epoch=coordinator_epoch)
    return build_batch(
        (record,),
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        partition_leader_epoch=partition_leader_epoch,
    )


def transaction_marker(control_type: int, *, offset: int, timestamp: int, coordinator_epoch: int) -> Record:
    value = _MARKER_VALUE.pack(0, coordinator_epoch)
    return Record(offset, timestamp, _CONTROL_KEY.pack(0, control_type), value)


def stamp_checksum(batch: bytearray | memoryview) -> None:
    checksum = crc.crc32c(memoryview(batch)[ATTRIBUTES_AT:])
    batch[CRC_AT:ATTRIBUTES_AT] = checksum.to_bytes(4, "big")


def encode_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    parts = [b"\0", varint(timestamp_delta), varint(offset_delta)]  # a record's attributes are unused
    _append_bytes(parts, record.key)
    _append_bytes(parts, record.value)
    parts.append(varint(len(record.headers)))
    for name, value in record.headers:
        _append_bytes(parts, name.encode("utf-8", "replace"))
        _append_bytes(parts, value)
    body = b"".join(parts)
    return varint(len(body)) + body


def _append_bytes(parts: list[bytes], content: bytes | None) -> None:
    if content is None:
        parts.append(b"\1")  # a length of -1
    else:
        parts += (varint(len(content)), content)


def varint(value: int) -> bytes:
    rest = value << 1 if value >= 0 else ~value << 1 | 1
    if rest < 128:
        return _VARINTS[rest]
    encoded = bytearray()
    while rest > 127:
        encoded.append(rest & 127 | 128)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


def ensure_appendable(record: Record, last_offset: int | None) -> None:
    if last_offset is not None and record.offset <= last_offset:
        message = f"Illegal offset {record.offset} following previous offset {last_offset}"
        raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, f"{message} (Offsets must increase monotonically).")
    if record.timestamp < 0 and record.timestamp != NO_TIMESTAMP:
        raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, f"Invalid negative timestamp {record.timestamp}")


def _ensure_producer_state(
    producer_id: int, producer_epoch: int, base_sequence: int, *, transactional: bool, control: bool
) -> None:
    message = None
    if producer_id == NO_PRODUCER_ID:
        if transactional:
            message = "Cannot write transactional messages without a valid producer ID"
    elif producer_epoch == NO_PRODUCER_EPOCH:
        message = "Invalid negative producer epoch"
    elif base_sequence < 0 and not control:
        message = "Invalid negative sequence number used"
    if message is not None:
        raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, message)
