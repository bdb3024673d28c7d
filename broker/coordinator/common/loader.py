"""What a partition of an internal topic says in the end: the last value of each key. Follows Kafka's CoordinatorLoader.

State that is written as keys and values, a tombstone for what is no more, can be read back without going through all
that happened: the last value of each key is the state, and that is just what compaction keeps. So a compacted log and
a whole one give the same here, and an old value is never decoded.

Records of a transaction count once its marker says that it was committed, and then as if they had been written in
their place in the log: something that was committed later is not replaced. Of a transaction that is open they are
*pending*. A tombstone takes what is pending for its key with it.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from sluice.broker.log.partition_log import PartitionLog
from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.message import Message
from sluice.protocol.records.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER,
    HEADER_BYTES,
    LOG_OVERHEAD,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    read_header,
)
from sluice.protocol.records.build import COMMIT
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import VarintError, iter_records, read_varint

_logger = logging.getLogger("sluice.broker")

_READ_BYTES = 5 * 2**20  # Kafka's offsets.load.buffer.size
_NOT_PLAIN = CODEC_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG


class Stored(NamedTuple):
    """The value of a key, and the offset of its record."""

    offset: int
    value: bytes


Values = dict[bytes, Stored]  # by key
_Read = Callable[[memoryview, int, int], tuple[Message, int]]
_Readers = tuple[_Read, _Read]  # of a key, of a value


class Replay:
    """What there is in a partition's log, up to its end."""

    __slots__ = ("_name", "pending", "values")

    def __init__(self, log: PartitionLog) -> None:
        self.values: Values = {}
        self.pending: dict[int, Values] = {}  # by producer id
        self._name = log.name
        for part in _parts(log):
            self._take(part)

    def _take(self, data: bytes) -> None:
        """Takes batches in. A loop of its own for what most of them are, records of no transaction, not compressed: a
        log may have a hundred thousand of them, and a client waits.
        """
        values, forget = self.values, self._forget
        position = 0
        while position < len(data):
            base_offset, length, _, _, _, attributes, _, _, _, _, _, _, count = HEADER.unpack_from(data, position)
            start, position = position, position + LOG_OVERHEAD + length
            try:
                if attributes & _NOT_PLAIN:
                    self._take_unusual(data[start:position])
                    continue
                at = start + HEADER_BYTES
                for _ in range(count):
                    size, at = read_varint(data, at)
                    end = at + size
                    at += 1  # attributes
                    while data[at] > 127:  # timestamp
                        at += 1
                    delta, at = read_varint(data, at + 1)
                    size, at = read_varint(data, at)
                    key = data[at : at + size]
                    size, at = read_varint(data, at + max(size, 0))
                    if size >= 0:
                        values[key] = Stored(base_offset + delta, data[at : at + size])
                    else:
                        forget(key)
                    at = end
            except (InvalidRecords, IndexError, VarintError) as error:
                where = {"partition": self._name, "offset": base_offset, "reason": repr(error)}
                _logger.error("coordinator records cannot be read and are left out", extra=where)

    def _take_unusual(self, batch: bytes) -> None:
        header = read_header(batch)
        if header.is_control:
            if header.is_transactional:
                self._end_transaction(header, batch)
            return
        values = self.pending.setdefault(header.producer_id, {}) if header.is_transactional else self.values
        for record in iter_records(batch):
            key = record.key or b""
            if record.value is not None:
                values[key] = Stored(record.offset, record.value)
            else:
                self._forget(key)

    def _forget(self, key: bytes) -> None:
        self.values.pop(key, None)
        for pending in self.pending.values():
            pending.pop(key, None)

    def _end_transaction(self, header: BatchHeader, batch: bytes) -> None:
        pending = self.pending.pop(header.producer_id, {})
        if not _commits(batch):
            return
        for key, stored in pending.items():
            present = self.values.get(key)
            if present is None or stored.offset > present.offset:
                self.values[key] = stored


class Kind(NamedTuple):
    """The messages that keys and values of one record type are."""

    key: type[Message]
    value: type[Message]
    value_versions: range


class RecordReader:
    """Takes keys and values apart: the type of the record stands before a key, a version before a value, each in two
    bytes. What a newer broker wrote, in types or versions not known here, is left out, as in Kafka, and counted.
    """

    __slots__ = ("_kinds", "_left_out", "_partition", "_readers")

    def __init__(self, partition: str, kinds: Mapping[int, Kind]) -> None:
        self._partition = partition
        self._kinds = kinds
        self._readers: dict[bytes, _Readers | None] = {}  # by the two bytes of the type and the two of the version
        self._left_out: Counter[bytes] = Counter()

    def read(self, key: bytes, stored: Stored) -> tuple[Message, Message] | None:
        """Key and value; None where they cannot be read."""
        value = stored.value
        what = key[:2] + value[:2]
        if what not in self._readers:
            self._readers[what] = self._readers_of(what)
        readers = self._readers[what]
        if readers is None:
            self._left_out[what] += 1
            return None
        read_key, read_value = readers
        try:
            return read_key(memoryview(key), 2, len(key))[0], read_value(memoryview(value), 2, len(value))[0]
        except RemoteProtocolError as error:
            where = {"partition": self._partition, "offset": stored.offset, "reason": str(error)}
            _logger.error("coordinator record cannot be read and is left out", extra=where)
            return None

    def _readers_of(self, what: bytes) -> _Readers | None:
        record_type, version = int.from_bytes(what[:2], signed=True), int.from_bytes(what[2:], signed=True)
        kind = self._kinds.get(record_type)
        if kind is None or version not in kind.value_versions:
            return None
        return decode_prefix(kind.key, 0), decode_prefix(kind.value, version)

    def report(self) -> None:
        """Says what was left out: one line for each type and version."""
        for what, count in self._left_out.items():
            record_type, version = int.from_bytes(what[:2], signed=True), int.from_bytes(what[2:], signed=True)
            extra = {"partition": self._partition, "type": record_type, "version": version, "records": count}
            _logger.warning("coordinator records of an unknown type or version are left out", extra=extra)


def _parts(log: PartitionLog) -> Iterator[bytes]:
    """The log, some whole batches at a time."""
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        found = log.read(offset, _READ_BYTES, end, min_one_batch=True)
        yield from map(bytes, found.parts)
        if found.next_offset <= offset:
            return
        offset = found.next_offset


def _commits(batch: bytes) -> bool:
    """Whether a marker is one of a commit; its record's key is version and type."""
    marker = next(iter_records(batch))
    return marker.key is not None and int.from_bytes(marker.key[2:4]) == COMMIT
