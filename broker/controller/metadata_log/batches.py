"""Encoding and decoding of the batches of a metadata log or snapshot, with the quorum's control records.

Follows Kafka's RecordsIterator and RecordsSnapshotWriter. The versions of records depend on the cluster's
metadata.version (MetadataVersion); a log that Kafka created keeps its own.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decoder, encoder
from sluice.protocol.errors import ErrorCode
from sluice.protocol.metadata import CONTROL_TYPES, UnknownRecordError, decode_value, encode_value
from sluice.protocol.metadata.brokers import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.topics import PartitionChangeRecord, PartitionRecord
from sluice.protocol.records.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC_AT,
    BatchHeader,
    batch_bounds,
    ensure_valid,
    read_header,
)
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import Record, iter_records

LATEST_METADATA_VERSION = 33  # 4.4-IV2
METADATA_TRANSACTIONS = 13  # since 3.6-IV1 records may be in transactions (KIP-868)
_ZK_MIGRATION, _DIRECTORIES, _ELR, _CORDONED_LOG_DIRS = 8, 17, 23, 30  # 3.4-IV0, 3.7-IV2, 4.0-IV1, 4.3-IV0
# Record -> first version, and the metadata versions that increment it; all other records have version 0.
_VERSIONS: dict[type[MetadataMessage], tuple[int, ...]] = {
    RegisterBrokerRecord: (1, _ZK_MIGRATION, _DIRECTORIES, _CORDONED_LOG_DIRS),
    PartitionRecord: (0, _DIRECTORIES, _ELR),
    PartitionChangeRecord: (0, _DIRECTORIES, _ELR),
}


def record_version(message: MetadataMessage, metadata_version: int) -> int:
    if isinstance(message, BrokerRegistrationChangeRecord):
        # As Kafka: the lowest version that can express the change.
        return 3 if message.cordoned_log_dirs is not None else 2 if message.log_dirs else message.in_controlled_shutdown
    first, *since = _VERSIONS.get(type(message), (0,))
    return first + sum(metadata_version >= level for level in since)


_CONTROL_KEY = Struct(">hh")
_CONTROL_KEY_VERSION = 0
_VERSION_BYTES = 2
_ONLY_MAGIC = 2
_MAGIC_BYTE = bytes([_ONLY_MAGIC])
_LENGTH_AT = 8
_START = Struct(">qiib")


class UnreadableRecordError(Exception):
    """A record in a batch with a valid checksum that cannot be interpreted."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"cannot interpret the record at offset {offset}: {reason}")


class Batch(NamedTuple):
    position: int
    header: BatchHeader
    data: memoryview


class BatchStart(NamedTuple):
    offset: int
    epoch: int
    now_ms: int


def batches_in(data: bytes) -> Iterator[Batch]:
    """Yield the complete batches. Raises InvalidRecords for a corrupt one."""
    view = memoryview(data)
    for position, size, magic in batch_bounds(data):
        if magic != _ONLY_MAGIC:
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
        batch = view[position : position + size]
        ensure_valid(batch)
        yield Batch(position, read_header(batch), batch)


def is_start_of_batch(data: bytes, base_offset: int) -> bool:
    fields = _START.unpack_from(data.ljust(_START.size, b"\0"))
    expected = _START.pack(base_offset, fields[1], fields[2], _ONLY_MAGIC)
    return expected.startswith(data[: _START.size]) and len(data) < max(fields[1] + LOG_OVERHEAD, HEADER_BYTES)


def find_batch(data: bytes) -> int | None:
    view = memoryview(data)
    magic_at = data.find(_MAGIC_BYTE, MAGIC_AT)
    while magic_at >= 0:
        position = magic_at - MAGIC_AT
        size = int.from_bytes(data[position + _LENGTH_AT : position + LOG_OVERHEAD], signed=True) + LOG_OVERHEAD
        if HEADER_BYTES <= size <= len(data) - position:
            try:
                ensure_valid(view[position : position + size])
            except InvalidRecords:
                pass
            else:
                return position
        magic_at = data.find(_MAGIC_BYTE, magic_at + 1)
    return None


def messages_in(batch: Batch) -> Iterator[tuple[int, MetadataMessage]]:
    """Yield the offset and content of each record, including control records. Raises UnreadableRecordError."""
    read = _control_message if batch.header.is_control else _metadata_message
    offset = batch.header.base_offset
    try:
        for record in iter_records(bytes(batch.data)):
            offset = record.offset
            yield offset, read(record)
    except (InvalidRecords, RemoteProtocolError, UnknownRecordError) as error:
        raise UnreadableRecordError(offset, str(error)) from None


def metadata_batch(messages: Sequence[MetadataMessage], metadata_version: int, start: BatchStart) -> bytes:
    values = [encode_value(message, record_version(message, metadata_version)) for message in messages]
    return build_batch(
        [Record(offset, start.now_ms, None, value) for offset, value in enumerate(values, start.offset)],
        base_offset=start.offset,
        partition_leader_epoch=start.epoch,
    )


def control_batch(messages: Sequence[MetadataMessage], version: int, start: BatchStart) -> bytes:
    """Return a batch of control records, all in `version`, which is also their first field."""
    return build_batch(
        [
            Record(offset, start.now_ms, _CONTROL_KEY.pack(_CONTROL_KEY_VERSION, message.TYPE), _body(message, version))
            for offset, message in enumerate(messages, start.offset)
        ],
        base_offset=start.offset,
        partition_leader_epoch=start.epoch,
        control=True,
    )


def _body(message: MetadataMessage, version: int) -> bytes:
    parts: list[bytes | memoryview] = []
    encoder(type(message), version)(message, parts)
    return b"".join(parts)


def _control_message(record: Record) -> MetadataMessage:
    if record.key is None or len(record.key) < _CONTROL_KEY.size or record.value is None:
        raise UnknownRecordError("control record without type or value")
    _, kind = _CONTROL_KEY.unpack_from(record.key)
    cls = CONTROL_TYPES.get(kind)
    version = int.from_bytes(record.value[:_VERSION_BYTES], signed=True)
    if cls is None:
        raise UnknownRecordError(f"control record type {kind}; expected {min(CONTROL_TYPES)} to {max(CONTROL_TYPES)}")
    # Newer versions only add tagged fields.
    version = max(cls.VERSIONS.min, min(version, cls.VERSIONS.max))
    return decoder(cls, version)(memoryview(record.value), 0, len(record.value))


def _metadata_message(record: Record) -> MetadataMessage:
    if record.value is None:
        raise UnknownRecordError("record without a value")
    return decode_value(record.value).message
