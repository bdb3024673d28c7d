"""The records in __share_group_state, as Kafka 4.4 writes them: record type 0 is a snapshot, 1 an update.

They are replayed in order: each update applies to the state before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from sluice.broker.coordinator.common.loader import RecordReader, RecordType, StoredRecord, read_batches
from sluice.broker.log.partition_log import PartitionLog
from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.message import Message
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.record import iter_records
from sluice.protocol.types import ZERO_UUID, V, Versions, int8, int16, int32, int64, string, uuid

from .persisted import SharePartitionId


class SharePartitionKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""
    topic_id: uuid = ZERO_UUID
    partition: int32 = 0


class StateBatch(Message):
    """Offsets with the same state: 0 available, 2 acknowledged, 4 archived."""

    first_offset: int64 = 0
    last_offset: int64 = 0
    delivery_state: int8 = 0
    delivery_count: int16 = 0


class ShareSnapshotValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    snapshot_epoch: int32 = 0
    state_epoch: int32 = 0
    leader_epoch: int32 = 0
    start_offset: int64 = 0
    delivery_complete_count: Annotated[int32, V("0+", tag=0)] = -1
    create_timestamp: int64 = 0
    write_timestamp: int64 = 0
    state_batches: list[StateBatch] = []


class ShareUpdateValue(Message):
    """Changes since the snapshot with the same epoch."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    snapshot_epoch: int32 = 0
    leader_epoch: int32 = 0
    start_offset: int64 = 0
    delivery_complete_count: Annotated[int32, V("0+", tag=0)] = -1
    state_batches: list[StateBatch] = []


SNAPSHOT, UPDATE = 0, 1
_RECORD_TYPES = {
    SNAPSHOT: RecordType(SharePartitionKey, ShareSnapshotValue, range(1)),
    UPDATE: RecordType(SharePartitionKey, ShareUpdateValue, range(1)),
}


def replay(log: PartitionLog) -> Iterator[tuple[SharePartitionId, Message | None, int]]:
    reader = RecordReader(log.name, _RECORD_TYPES.get)
    for data in read_batches(log):
        for position, header in iter_batches(data):
            if header.is_control:
                continue
            for record in iter_records(data[position : position + header.size_in_bytes]):
                key = record.key or b""
                if record.value is None:
                    deleted = _tombstone(key)
                    if deleted is not None:
                        yield deleted, None, record.offset
                    continue
                decoded = reader.read(key, StoredRecord(record.offset, record.value))
                if decoded is not None:
                    yield _id(decoded[0]), decoded[1], record.offset
    reader.log_skipped()


def _tombstone(key: bytes) -> SharePartitionId | None:
    if int.from_bytes(key[:2]) != SNAPSHOT:
        return None
    try:
        return _id(decode_prefix(SharePartitionKey, 0)(memoryview(key), 2, len(key))[0])
    except RemoteProtocolError:
        return None


def _id(key: Message) -> SharePartitionId:
    assert isinstance(key, SharePartitionKey)
    return SharePartitionId(key.group_id, key.topic_id, key.partition)
