"""Down-conversion of stored batches for consumers older than Kafka 0.11."""

import pytest
from hypothesis import given, settings

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import batch_bounds
from sluice.protocol.records.build import COMMIT, build_batch, build_transaction_marker
from sluice.protocol.records.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD
from sluice.protocol.records.convert import down_convert
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.legacy import build_message_set, iter_messages, read_message
from sluice.protocol.records.record import Record
from tests.unit.protocol.records.samples import record_lists

OLD_CODECS = (NONE, GZIP, SNAPPY, LZ4)
OLD_NAMES = [NAMES[codec] for codec in OLD_CODECS]
RECORDS = [Record(10, 100, b"key", b"value", (("lost", b"header"),)), Record(11, 90, None, None)]
MARKER = build_transaction_marker(COMMIT, offset=12, timestamp=1, producer_id=1, producer_epoch=0, coordinator_epoch=0)


def read(data: bytes) -> list[Record]:
    return [
        message.record()
        for position, size, _ in batch_bounds(data)
        for message in iter_messages(read_message(data[position : position + size]))
    ]


def old(records: list[Record], magic: int) -> list[Record]:
    return [Record(r.offset, r.timestamp if magic else -1, r.key, r.value) for r in records]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", OLD_CODECS, ids=OLD_NAMES)
@settings(max_examples=settings().max_examples // 6)
@given(records=record_lists())
def test_all_fields_of_the_old_format_survive_and_headers_are_dropped(
    magic: int, codec: int, records: list[Record]
) -> None:
    assert read(down_convert(build_batch(records, compression=codec), magic, 0)) == old(records, magic)


def test_control_batches_are_dropped() -> None:
    data = build_batch(RECORDS, base_offset=10) + MARKER + build_batch([Record(13, 1, None, b"x")], base_offset=13)
    assert [record.offset for record in read(down_convert(data, 1, 0))] == [10, 11, 13]
    assert down_convert(MARKER, 1, 0) == b""


def test_batch_without_remaining_records_is_dropped() -> None:
    assert down_convert(build_batch(RECORDS, base_offset=10), 1, 12) == b""
    assert down_convert(build_batch([], base_offset=10, last_offset=12), 1, 0) == b""


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_copied(magic: int) -> None:
    data = build_message_set(old(RECORDS, magic), magic, compression=GZIP)
    assert down_convert(data, magic, 0) == data
    assert down_convert(data + data[:-1], magic, 0) == data, "a truncated message is dropped"


def test_zstd_is_rejected() -> None:
    data = bytearray(build_batch(RECORDS, base_offset=10, compression=ZSTD))
    data[61:] = bytes(len(data) - 61)  # not even a zstd stream: it is not decoded
    message = "Down-conversion of zstandard-compressed batches is not supported"
    with pytest.raises(InvalidRecords, match=message) as error:
        down_convert(bytes(data), 1, 0)
    assert error.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_corrupt_records_are_an_error() -> None:
    data = bytearray(build_batch(RECORDS, base_offset=10))
    data[61] = 1
    with pytest.raises(InvalidRecords, match="Invalid record size"):
        down_convert(bytes(data), 1, 0)
