"""The fast walk agrees with the exact reader, and skimming accepts what Kafka accepts."""

from collections.abc import Iterable
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records import walk as walk_module
from sluice.protocol.records.batch import HEADER_BYTES, BatchHeader, read_header
from sluice.protocol.records.build import build_batch, encode_record, varint
from sluice.protocol.records.invalid import BrokenStream, InvalidRecords
from sluice.protocol.records.record import Record, read_buffer, read_stream
from sluice.protocol.records.walk import SkimmedRecord, _deltas_of_alike, skim_stream, walk
from tests.unit.protocol.records.samples import NOW_MS, PLAIN, record_lists

BODY = b"\0\0\0\1\1\0"  # an empty record: attributes, deltas, null key and value, no headers
BROKEN = BrokenStream("the stream broke", 1)
MUTATIONS = st.lists(st.tuples(st.integers(0, 400), st.sampled_from((0, 1, 2, 3, 0x7F, 0x80, 0xFF))), max_size=2)


def split(records: list[Record]) -> tuple[BatchHeader, bytes]:
    batch = build_batch(records)
    return read_header(batch), batch[HEADER_BYTES:]


def header_of(count: int) -> BatchHeader:
    header = read_header(build_batch([], log_append_time=NOW_MS))
    header.record_count = count
    return header


def skimmed(records: Iterable[Record | SkimmedRecord]) -> list[tuple[int, int, bool]]:
    return [(record.offset, record.timestamp, record.has_key) for record in records]


@settings(max_examples=20)
@given(record_lists())
def test_valid_records_are_walked_to_the_end(records: list[Record]) -> None:
    header, section = split(records)
    deltas = [record.timestamp - header.base_timestamp for record in records]
    assert walk(section, len(records), null_keys=True) == (min(deltas), max(deltas))
    has_keys = all(record.has_key for record in records)
    assert (walk(section, len(records), null_keys=False) is not None) == has_keys


@pytest.mark.parametrize("count", [63, 64, 65, 127, 128, 129, 8191, 8192, 8193, 10_000])
def test_offset_deltas_of_every_length_are_read(count: int) -> None:
    section = b"".join(encode_record(Record(index, 0, None, None), index, -index) for index in range(count))
    assert walk(section, count, null_keys=True) == (1 - count, 0)
    swapped = section[: -len(encode_record(Record(0, 0, None, None), count - 1, 1 - count))]
    assert walk(swapped + encode_record(Record(0, 0, None, None), count, 0), count, null_keys=True) is None


@pytest.mark.parametrize("size", [0, 1, 30, 31, 32, 63, 64, 65, 8190, 8191, 8192, 8193, 1_100_000])
def test_lengths_of_every_size_are_read(size: int) -> None:
    records = [Record(0, 0, bytes(size), bytes(size), (("n" * size, bytes(size)),)), Record(1, 0, b"", bytes(size))]
    _, section = split(records)
    assert walk(section, 2, null_keys=False) == (0, 0)
    assert walk(section, 1, null_keys=False) is None
    assert walk(section, 3, null_keys=False) is None


SIZES = st.sampled_from((None, 0, 1, 30, 31, 55, 56, 57, 63, 64, 200, 8_190))
RUNS = st.lists(
    st.tuples(
        st.integers(1, 70),
        SIZES,
        SIZES,
        st.lists(st.sampled_from((-64, -1, 0, 1, 63)), min_size=1) | st.just([64]),
        st.sampled_from(((), (), (("name", b"content"),))),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=3 * settings().max_examples)
@given(RUNS, st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 255)), max_size=2), st.integers(-2, 2))
def test_slices_of_alike_records_change_no_result(
    runs: list[tuple[int, int | None, int | None, list[int], tuple[tuple[str, bytes], ...]]],
    changes: list[tuple[int, int]],
    more: int,
) -> None:
    parts: list[bytes] = []
    for count, key, value, deltas, headers in runs:
        record = Record(0, 0, None if key is None else bytes(key), None if value is None else bytes(value), headers)
        for index in range(count):
            parts.append(encode_record(record, len(parts), deltas[index % len(deltas)]))
    section = bytearray().join(parts)
    for position, byte in changes:
        section[position % len(section)] = byte
    for null_keys in (True, False):
        walked = walk(bytes(section), len(parts) + more, null_keys=null_keys)
        with patch.object(walk_module, "_deltas_of_alike", lambda *_: b""):
            assert walked == walk(bytes(section), len(parts) + more, null_keys=null_keys)
        assert walked is None or more == 0 or changes


@pytest.mark.parametrize("count", [64, 65, 8_192, 8_193, 8_300])
def test_alike_records_are_walked_in_few_steps(count: int) -> None:
    section = b"".join(encode_record(Record(0, 0, b"key", b"value"), index, -1) for index in range(count))
    with patch.object(walk_module, "_deltas_of_alike", wraps=_deltas_of_alike) as steps:
        assert walk(section, count, null_keys=False) == (-1, -1)
    assert steps.call_count <= 10


@given(record_lists(), MUTATIONS)
def test_walk_accepts_nothing_that_the_exact_reader_rejects(
    records: list[Record], changes: list[tuple[int, int]]
) -> None:
    header, section = split(records[:5])
    header.record_count = min(header.record_count, 5)
    section = b"".join(encode_record(r, r.offset, r.timestamp - header.base_timestamp) for r in records[:5])
    changed = bytearray(section)
    for position, value in changes:
        changed[position % len(changed)] = value
    deltas = walk(bytes(changed), header.record_count, null_keys=True)
    if deltas is not None:
        read = list(read_buffer(bytes(changed), header))
        assert [record.offset for record in read] == list(range(len(read)))
        timestamps = [record.timestamp - header.base_timestamp for record in read]
        assert deltas == (min(timestamps), max(timestamps))


@given(record_lists(), MUTATIONS)
def test_skimming_accepts_all_readable_records(records: list[Record], changes: list[tuple[int, int]]) -> None:
    header, _ = split(records[:3])
    header.record_count = len(records[:3])
    section = bytearray(b"".join(encode_record(r, r.offset, r.timestamp - header.base_timestamp) for r in records[:3]))
    for position, value in changes:
        section[position % len(section)] = value
    try:
        read = list(read_stream(bytes(section), None, header))
    except InvalidRecords:
        return
    assert skimmed(skim_stream(bytes(section), None, header)) == skimmed(read)


@pytest.mark.parametrize(
    "section",
    [varint(7) + BODY, varint(5) + BODY, varint(0) + BODY, varint(1000) + BODY],
    ids=["too long", "too short", "nothing", "beyond the section"],
)
def test_skimming_does_not_compare_record_length_with_content(section: bytes) -> None:
    assert len(list(skim_stream(section, None, header_of(1)))) == 1
    with pytest.raises(InvalidRecords):
        list(read_stream(section, None, header_of(1)))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (b"", "premature EOF"),
        (varint(-5) + BODY, "Invalid record size: -5 is negative"),
        (b"\xff" * 6, "premature EOF"),
        (varint(6), "Found invalid record structure"),
        (varint(6) + BODY[:-1], "Found invalid record structure"),
        (varint(6) + b"\0\0\0\2\1\0", "Found invalid record structure"),
        (varint(6) + b"\0\0\0\1\4\0", "Found invalid record structure"),
        (varint(6) + b"\0" + b"\xff" * 11, "Found invalid record structure"),
        (varint(6) + b"\0\0\0\1\1\1", "Found invalid number of record headers -1"),
        (varint(8) + b"\0\0\0\1\1\2\1\1", "Invalid negative header key size -1"),
        (varint(6) + BODY + b"\0", "records still remaining"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_skimming_rejects(section: bytes, message: str) -> None:
    with pytest.raises(InvalidRecords, match=message) as error:
        list(skim_stream(section, None, header_of(1)))
    assert error.value.code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("reader", [skim_stream, read_stream], ids=("skimming", "reading"))
def test_stream_error_is_raised_at_its_position(reader: object) -> None:
    assert callable(reader)
    few = PLAIN[:3]
    header, section = split(few)
    for size in range(len(section) + 1):
        records = reader(section[:size], BROKEN, header)
        whole = sum(1 for index in range(1, 3) if size >= len(split(few[:index])[1]))
        for offset in range(whole):
            assert next(records).offset == offset
        with pytest.raises(InvalidRecords, match="the stream broke"):
            next(records)
