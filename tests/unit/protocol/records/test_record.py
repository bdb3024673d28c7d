"""Records of magic 2: round trips, interoperability, and errors at the right place."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import HEADER_BYTES
from sluice.protocol.records.build import build_batch, varint
from sluice.protocol.records.compression import NAMES, SNAPPY, ZSTD
from sluice.protocol.records.invalid import InvalidRecords, SectionTooLarge
from sluice.protocol.records.record import Record, VarintError, iter_records, read_varint, read_varlong
from tests.unit.protocol.records.samples import NOW_MS, PLAIN, record_lists

CODECS = range(len(NAMES))
INVALID = ErrorCode.INVALID_RECORD
BODY = b"\0\0\0\1\1\0"  # a record with nothing in it: attributes, deltas, null key and value, no headers


def batch_of(section: bytes, count: int) -> bytes:
    """Return a batch with this records section; these readers ignore the checksum."""
    batch = bytearray(build_batch([], log_append_time=NOW_MS))
    batch[8:12] = (49 + len(section)).to_bytes(4, "big")
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    return bytes(batch) + section


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
@settings(max_examples=settings().max_examples // 5)
@given(records=record_lists(), base_offset=st.sampled_from((0, 7, 2**40)))
def test_records_round_trip(codec: int, records: list[Record], base_offset: int) -> None:
    moved = [Record(r.offset + base_offset, r.timestamp, r.key, r.value, r.headers) for r in records]
    assert list(iter_records(build_batch(moved, base_offset=base_offset, compression=codec))) == moved


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_truncated_batch_gives_only_the_records_before_the_cut(codec: int) -> None:
    few = PLAIN[:3]
    batch = build_batch(few, compression=codec)
    for size in range(HEADER_BYTES, len(batch)):
        read: list[Record] = []
        with pytest.raises(InvalidRecords):
            read.extend(iter_records(batch[:size]))
        records = iter_records(batch[:size])
        for expected in few:
            try:
                assert next(records) == expected
            except InvalidRecords:
                break
        else:
            pytest.fail(f"all records came out of the first {size} bytes")


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (varint(-5) + BODY, INVALID, "expected to read -5 bytes in record payload, but instead read 6"),
        (varint(7) + BODY, INVALID, "but instead the buffer has only 6 remaining bytes"),
        (varint(5) + BODY, INVALID, "expected to read 5 bytes in record payload, but instead read 6"),
        (varint(6) + BODY + b"\0", INVALID, "records still remaining in file"),
        (b"", INVALID, "premature EOF reached"),
        (b"\x80\x80", INVALID, "premature EOF reached"),
        (b"\xff" * 5 + BODY, ErrorCode.UNKNOWN_SERVER_ERROR, "Varint is too long"),
        (varint(6) + b"\0\0\0\4\1\0", INVALID, "Found invalid record structure"),
        (varint(6) + b"\0\0\0\1\4\0", INVALID, "Found invalid record structure"),
        (varint(6) + b"\0\0\0\1\1\1", INVALID, "Found invalid number of record headers -1"),
        (varint(6) + b"\0\0\0\1\1\2", INVALID, "1 is larger than the remaining size of the buffer"),
        (varint(8) + b"\0\0\0\1\1\2\1\1", INVALID, "Invalid negative header key size -1"),
        (varint(16) + b"\0" + b"\xff" * 10 + b"\0\1\1\0\0", INVALID, "invalid record structure"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_invalid_record_has_kafkas_error(body: bytes, code: ErrorCode, message: str) -> None:
    with pytest.raises(InvalidRecords, match=message) as error:
        list(iter_records(batch_of(body, 1)))
    assert error.value.code == code


EMPTY = Record(0, -1, None, None)


DEVIATIONS = {
    "lengths of -2 and -3 are null": (varint(6) + b"\0\0\0\3\5\0", EMPTY),
    "a header name that is not UTF-8": (
        varint(9) + b"\0\0\0\1\1\2\2\xff\1",
        Record(0, -1, None, None, (("\ufffd", None),)),
    ),
    "attributes": (varint(6) + b"\x7f\0\0\1\1\0", EMPTY),
    "a varint longer than needed": (varint(7) + b"\0\0\x80\0\1\1\0", EMPTY),
}


@pytest.mark.parametrize(("body", "record"), DEVIATIONS.values(), ids=DEVIATIONS)
def test_deviation_that_kafka_accepts_is_read(body: bytes, record: Record) -> None:
    assert list(iter_records(batch_of(body, 1))) == [record]


def test_last_record_is_not_returned_if_data_follows() -> None:
    records = iter_records(batch_of((varint(6) + BODY) * 3, 2))
    assert next(records).offset == 0
    with pytest.raises(InvalidRecords, match="records still remaining in file"):
        next(records)


def test_negative_count_is_an_error() -> None:
    with pytest.raises(InvalidRecords, match="Found invalid record count -1 in magic v2 batch"):
        iter_records(batch_of(varint(6) + BODY, -1))


@pytest.mark.parametrize("codec", range(1, len(NAMES)), ids=NAMES[1:])
def test_section_larger_than_the_limit_is_rejected(codec: int) -> None:
    batch = build_batch([Record(0, 0, None, bytes(100_000))], compression=codec)
    with pytest.raises(SectionTooLarge, match="decompress to more than 50000 bytes"):
        list(iter_records(batch, limit_bytes=50_000))
    assert len(list(iter_records(batch, limit_bytes=200_000))) == 1


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec_has_javas_error(codec: int) -> None:
    batch = bytearray(build_batch(PLAIN))
    batch[22] = codec
    with pytest.raises(InvalidRecords, match=f"Unknown compression type id: {codec}") as error:
        iter_records(bytes(batch))
    assert error.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_round_trip(value: int) -> None:
    encoded = varint(value)
    assert read_varlong(encoded, 0) == (value, len(encoded))
    if -(2**31) <= value < 2**31:
        assert read_varint(encoded, 0) == (value, len(encoded))


@pytest.mark.parametrize(("read", "most"), [(read_varint, 5), (read_varlong, 10)])
def test_varint_ends_within_the_bytes_of_its_type(read: object, most: int) -> None:
    assert callable(read)
    with pytest.raises(VarintError):
        read(b"\x80" * most + b"\0", 0)
    with pytest.raises(IndexError):
        read(b"\x80" * (most - 1), 0)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([Record(1, 0, None, None), Record(1, 0, None, None)], "Illegal offset 1 following previous offset 1"),
        ([Record(0, -2, None, None)], "Invalid negative timestamp -2"),
        ([Record(2**31, 0, None, None)], "Maximum offset delta exceeded"),
    ],
    ids=["offsets that do not increase", "a negative timestamp", "an offset too far from the base"],
)
def test_invalid_record_is_not_built(records: list[Record], message: str) -> None:
    with pytest.raises(InvalidRecords, match=message):
        build_batch(records)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transactional": True}, "transactional messages without a valid producer ID"),
        ({"producer_id": 1}, "Invalid negative producer epoch"),
        ({"producer_id": 1, "producer_epoch": 0}, "Invalid negative sequence number used"),
    ],
    ids=["a transaction without a producer id", "no epoch", "no sequence"],
)
def test_invalid_producer_state_is_not_built(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRecords, match=message):
        build_batch(PLAIN, **options)


def test_compression_levels_are_used() -> None:
    fast, small = (build_batch(PLAIN, compression=ZSTD, level=level) for level in (1, 19))
    assert list(iter_records(fast)) == list(iter_records(small)) == PLAIN
    assert len(small) <= len(fast)


@pytest.mark.parametrize(
    ("sizes", "readable"),
    [((500, 500), 0), ((1000, 1000, 1000), 2), ((5000, 1000), 1), ((5000, 1000, 1100), 2), ((2100,), 0)],
    ids=str,
)
def test_corrupt_snappy_block_fails_the_read_that_reaches_it(sizes: tuple[int, ...], readable: int) -> None:
    # Kafka reads 2048 bytes at a time, and the rest of a larger record at once.
    records = [Record(index, NOW_MS, None, bytes(size)) for index, size in enumerate(sizes)]
    batch = bytearray(build_batch(records, compression=SNAPPY) + b"\0\0\0\1\xff")
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    read = iter_records(bytes(batch))
    assert [next(read).offset for _ in range(readable)] == list(range(readable))
    with pytest.raises(InvalidRecords, match="Failed to decompress record stream"):
        next(read)
