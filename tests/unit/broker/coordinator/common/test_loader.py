"""The state that is loaded from a partition of an internal topic: the last committed value of each key."""

from __future__ import annotations

import logging
from typing import ClassVar

import pytest

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.common.loader import CompactedState, RecordReader, RecordType, StoredRecord
from sluice.broker.log.partition_log import PartitionLog
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC
from sluice.protocol.message import Message
from sluice.protocol.records.build import ABORT, COMMIT, build_batch, build_transaction_marker
from sluice.protocol.records.log_validator import COORDINATOR
from sluice.protocol.records.record import Record
from sluice.protocol.types import Versions, int8
from tests.support.virtual_broker import WALL_START_MS, VirtualBroker


class Log:
    """A partition of __consumer_offsets with methods that append records and markers."""

    def __init__(self) -> None:
        broker = VirtualBroker()
        self.log: PartitionLog = broker.broker.cluster.internal_topic(GROUP_METADATA_TOPIC).partitions[0].log

    def write(self, *records: KeyValue, producer_id: int = -1, compression: int = 0) -> Log:
        transactional = producer_id >= 0
        data = build_batch(
            [Record(at, WALL_START_MS + at, key, value) for at, (key, value) in enumerate(records)],
            producer_id=producer_id,
            producer_epoch=0 if transactional else -1,
            base_sequence=0 if transactional else -1,
            transactional=transactional,
            compression=compression,
        )
        return self._append(data)

    def end(self, kind: int, producer_id: int) -> Log:
        return self._append(
            build_transaction_marker(
                kind, offset=0, timestamp=WALL_START_MS, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
            )
        )

    def _append(self, data: bytes | bytearray) -> Log:
        result = self.log.append(memoryview(bytearray(data)), WALL_START_MS, 0, COORDINATOR)
        assert not result.error_code, result
        return self


A1, A2, GONE = (b"a", b"1"), (b"a", b"2"), (b"a", None)
LOADED_LOGS = {
    "empty log": (Log(), {}),
    "a later value replaces an earlier one": (
        Log().write(A1, (b"b", b"1")).write(A2),
        {b"a": (2, b"2"), b"b": (1, b"1")},
    ),
    "tombstone removes the value": (Log().write(A1).write(GONE), {}),
    "value after a tombstone": (Log().write(A1).write(GONE, A2), {b"a": (2, b"2")}),
    "compressed batch": (Log().write(A1, (b"b", b""), compression=3), {b"a": (0, b"1"), b"b": (1, b"")}),
    "long key and value": (Log().write((b"k" * 300, b"v" * 100_000)), {b"k" * 300: (0, b"v" * 100_000)}),
    "records of an open transaction are ignored": (Log().write(A1, producer_id=5), {}),
    "records of a committed transaction count": (Log().write(A1, producer_id=5).end(COMMIT, 5), {b"a": (0, b"1")}),
    "records of an aborted transaction are ignored": (
        Log().write(A1).write(A2, producer_id=5).end(ABORT, 5),
        {b"a": (0, b"1")},
    ),
    "a late commit does not replace a newer record": (
        Log().write(A1, producer_id=5).write(A2).end(COMMIT, 5),
        {b"a": (1, b"2")},
    ),
    "tombstone also removes pending values": (Log().write(A1, producer_id=5).write(GONE).end(COMMIT, 5), {}),
    "transactions end independently": (
        Log().write(A1, producer_id=5).write(A2, producer_id=6).end(ABORT, 6).end(COMMIT, 5),
        {b"a": (0, b"1")},
    ),
    "marker does not affect later records": (Log().end(COMMIT, 5).write(A1, producer_id=5), {}),
}


@pytest.mark.parametrize(("log", "expected"), LOADED_LOGS.values(), ids=LOADED_LOGS)
def test_the_last_committed_value_of_each_key_is_loaded(log: Log, expected: dict[bytes, tuple[int, bytes]]) -> None:
    assert dict(CompactedState(log.log).values) == expected


def test_records_of_open_transactions_are_pending_per_producer() -> None:
    log = Log().write(A1, A2, producer_id=5).write((b"b", b"3"), producer_id=6)
    pending = CompactedState(log.log).pending
    assert pending == {5: {b"a": StoredRecord(1, b"2")}, 6: {b"b": StoredRecord(2, b"3")}}


def test_log_is_read_from_its_start_offset_to_its_end() -> None:
    log = Log()
    for number in range(200):
        log.write((b"%d" % number, bytes(50_000)))
    log.log.delete_records_before(3)
    loaded = CompactedState(log.log).values
    assert list(loaded) == [b"%d" % number for number in range(3, 200)]


def test_unreadable_records_are_skipped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    log = Log().write((b"a", b"1")).write((b"b", b"2")).write((b"c", b"3"))
    [part] = log.log.read(0, 1 << 20, 3, min_one_batch=True).parts
    second = len(part) // 3
    part[second + 65 : second + 70] = b"\xff" * 5  # a key length varint that never terminates
    with caplog.at_level(logging.ERROR, "sluice.broker"):
        assert list(CompactedState(log.log).values) == [b"a", b"c"]
    [line] = caplog.records
    assert (vars(line)["partition"], vars(line)["offset"]) == ("__consumer_offsets-0", 1)


# -- reading keys and values -------------------------------------------------------------------------------------------


class Key(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    number: int8 = 0


class Value(Message):
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="none")

    number: int8 = 0


RECORD_TYPES = {1: RecordType(Key, Value, range(2))}


def test_record_reader_returns_key_and_value() -> None:
    reader = RecordReader("p-0", RECORD_TYPES.get)
    assert reader.read(b"\0\1\7", StoredRecord(0, b"\0\1\x08")) == (Key(number=7), Value(number=8))


def test_unknown_record_types_and_versions_are_skipped_and_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    reader = RecordReader("p-0", RECORD_TYPES.get)
    with caplog.at_level(logging.WARNING, "sluice.broker"):
        for _ in range(3):
            assert reader.read(b"\0\x63\7", StoredRecord(0, b"\0\0\x08")) is None
        assert reader.read(b"\0\1\7", StoredRecord(0, b"\0\2\x08")) is None
        assert reader.read(b"\0\1\7", StoredRecord(0, b"\xff\xff\x08")) is None
        assert not caplog.records
        reader.log_skipped()
    skipped = [(vars(record)["type"], vars(record)["version"], vars(record)["records"]) for record in caplog.records]
    assert skipped == [(99, 0, 3), (1, 2, 1), (1, -1, 1)]


def test_unreadable_record_is_skipped_and_logged_with_its_offset(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "sluice.broker"):
        assert RecordReader("p-0", RECORD_TYPES.get).read(b"\0\1", StoredRecord(41, b"\0\0\x08")) is None
    [line] = caplog.records
    assert (vars(line)["partition"], vars(line)["offset"]) == ("p-0", 41)
