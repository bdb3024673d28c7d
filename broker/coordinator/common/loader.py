"""The state stored in a partition of an internal topic. Follows Kafka's CoordinatorLoader.

The state is the last value of each key. Records of a transaction are *pending* until its commit marker is read, and do
not replace a value with a higher offset. A tombstone also deletes the pending values of its key.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from sluice.broker.log.partition_log import PartitionLog
from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.message import Message
from sluice.protocol.records.batch import BatchHeader, iter_batches
from sluice.protocol.records.build import COMMIT
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import control_type, iter_records

_logger = logging.getLogger("sluice.broker")

_READ_BYTES = 5 * 2**20


class StoredRecord(NamedTuple):
    offset: int
    value: bytes


Values = dict[bytes, StoredRecord]
_Read = Callable[[memoryview, int, int], tuple[Message, int]]
_Readers = tuple[_Read, _Read]


class CompactedState:
    def __init__(self, log: PartitionLog) -> None:
        self.values: Values = {}
        self.pending: dict[int, Values] = {}
        for data in read_batches(log):
            for position, header in iter_batches(data):
                try:
                    self._add(header, data[position : position + header.size_in_bytes])
                except InvalidRecords as error:
                    where = {"partition": log.name, "offset": header.base_offset, "reason": repr(error)}
                    _logger.error("skipping coordinator records that cannot be decoded", extra=where)

    def _add(self, header: BatchHeader, batch: bytes) -> None:
        if header.is_control:
            if header.is_transactional:
                self._end_transaction(header, batch)
            return
        values = self.pending.setdefault(header.producer_id, {}) if header.is_transactional else self.values
        for record in iter_records(batch):
            key = record.key or b""
            if record.value is not None:
                values[key] = StoredRecord(record.offset, record.value)
            else:
                self._delete(key)

    def _delete(self, key: bytes) -> None:
        self.values.pop(key, None)
        for pending in self.pending.values():
            pending.pop(key, None)

    def _end_transaction(self, header: BatchHeader, batch: bytes) -> None:
        pending = self.pending.pop(header.producer_id, {})
        if control_type(batch) != COMMIT:
            return
        for key, stored in pending.items():
            current = self.values.get(key)
            if current is None or stored.offset > current.offset:
                self.values[key] = stored


class RecordType(NamedTuple):
    key: type[Message]
    value: type[Message]
    value_versions: range


class RecordReader:
    """The decoder of keys and values. As in Kafka, types and versions of newer brokers are skipped and counted."""

    def __init__(self, partition: str, record_type_of: Callable[[int], RecordType | None]) -> None:
        self._partition = partition
        self._record_type_of = record_type_of
        self._readers: dict[bytes, _Readers | None] = {}
        self._skipped: Counter[bytes] = Counter()

    def read(self, key: bytes, stored: StoredRecord) -> tuple[Message, Message] | None:
        """Return key and value; None if they cannot be decoded."""
        value = stored.value
        prefixes = key[:2] + value[:2]
        if prefixes not in self._readers:
            self._readers[prefixes] = self._readers_of(prefixes)
        readers = self._readers[prefixes]
        if readers is None:
            self._skipped[prefixes] += 1
            return None
        read_key, read_value = readers
        try:
            return read_key(memoryview(key), 2, len(key))[0], read_value(memoryview(value), 2, len(value))[0]
        except RemoteProtocolError as error:
            where = {"partition": self._partition, "offset": stored.offset, "reason": str(error)}
            _logger.error("skipping a coordinator record that cannot be decoded", extra=where)
            return None

    def _readers_of(self, prefixes: bytes) -> _Readers | None:
        number, version = _type_and_version(prefixes)
        record_type = self._record_type_of(number)
        if record_type is None or version not in record_type.value_versions:
            return None
        return decode_prefix(record_type.key, 0), decode_prefix(record_type.value, version)

    def log_skipped(self) -> None:
        for prefixes, count in self._skipped.items():
            number, version = _type_and_version(prefixes)
            extra = {"partition": self._partition, "type": number, "version": version, "records": count}
            _logger.warning("skipped coordinator records of an unknown type or version", extra=extra)


def _type_and_version(prefixes: bytes) -> tuple[int, int]:
    return int.from_bytes(prefixes[:2], signed=True), int.from_bytes(prefixes[2:], signed=True)


def read_batches(log: PartitionLog) -> Iterator[bytes]:
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        found = log.read(offset, _READ_BYTES, end, min_one_batch=True)
        yield from map(bytes, found.parts)
        if found.next_offset <= offset:
            return
        offset = found.next_offset
