"""The records in a partition of `__share_group_state`, in order: each update applies to the state before it."""

from collections.abc import Iterator

from sluice.broker.coordinator.common.loader import RecordReader, RecordType, StoredRecord, read_batches
from sluice.broker.log.partition_log import PartitionLog
from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.message import Message
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.record import iter_records

from .persisted import SharePartitionId
from .record_messages import SharePartitionKey, ShareSnapshotValue, ShareUpdateValue

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
