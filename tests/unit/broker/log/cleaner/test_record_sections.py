"""Passes over the records of a batch for a cleaning return the same records as a full decode."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.log.cleaner.offset_map import SHARD_MASK, OffsetMap
from sluice.broker.log.cleaner.record_sections import Section
from sluice.protocol.records.batch import HEADER_BYTES, read_header
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.compression import GZIP, NONE
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import Record

KEYS = st.none() | st.sampled_from([b"", b"a", b"b", b"c" * 70, b"d" * 9000])
VALUES = st.none() | st.sampled_from([b"", b"v", b"w" * 100, b"x" * 20_000])
HEADERS = st.lists(st.tuples(st.sampled_from(["", "h" * 80]), VALUES), max_size=2).map(tuple)


def section_of(records: Sequence[Record], compression: int = NONE) -> Section:
    batch = build_batch(records, base_offset=records[0].offset, compression=compression)
    return Section(read_header(batch), memoryview(batch))


def put(offsets: OffsetMap, key: bytes, offset: int) -> None:
    offsets.shards[hash(key) & SHARD_MASK][key] = offset


def content(offsets: OffsetMap) -> dict[bytes, int]:
    return {key: offset for shard in offsets.shards for key, offset in shard.items()}


@st.composite
def batches(draw: st.DrawFn) -> list[Record]:
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(1, 20))):
        timestamp = draw(st.sampled_from([-1, 0, 1, 2**40]))
        records.append(Record(offset, timestamp, draw(KEYS), draw(VALUES), draw(HEADERS)))
        offset += draw(st.sampled_from([1, 2, 63, 9000]))
    return records


@given(records=batches(), most=st.integers(1, 5))
def test_collect_keys_stores_the_last_offset_of_each_key(records: list[Record], most: int) -> None:
    offsets = OffsetMap(100)
    section = section_of(records)
    from_offset = records[len(records) // 2].offset
    while not section.is_done:
        assert section.collect_keys(offsets, from_offset, most)
    assert content(offsets) == {r.key: r.offset for r in records if r.key is not None and r.offset >= from_offset}


@given(records=batches(), most=st.integers(1, 5), keeps_tombstones=st.booleans(), data=st.data())
def test_filter_records_keeps_latest_records_and_recent_tombstones(
    records: list[Record], most: int, keeps_tombstones: bool, data: st.DataObject
) -> None:
    offsets = OffsetMap(100)
    offsets.latest_offset = data.draw(st.sampled_from(records)).offset
    for record in records:
        if record.key is not None and data.draw(st.booleans()):
            put(offsets, record.key, record.offset)
    known_offsets = content(offsets)
    section = section_of(records)
    while not section.is_done:
        section.filter_records(offsets, keeps_tombstones, most)
    kept = [
        record
        for record in records
        if record.offset > offsets.latest_offset
        or (
            record.key is not None
            and record.offset >= known_offsets.get(record.key, -1)
            and (record.value is not None or keeps_tombstones)
        )
    ]
    assert section.dropped == (len(kept) < len(records))
    assert section.kept_tombstone == any(record.value is None for record in kept)
    count = section.kept_count
    assert section.timestamps(0, count) == [record.timestamp for record in kept]
    first = records[0]
    for base in (first.timestamp, 7):
        parts = [
            section.encode_kept(base, position, section.timestamps(position, most))
            for position in range(0, count, most)
        ]
        assert b"".join(parts) == build_batch(kept, base_offset=first.offset, delete_horizon_ms=base)[HEADER_BYTES:]
    parts = [section.copy_kept(position, most) for position in range(0, count, most)]
    as_stored = build_batch(kept, base_offset=first.offset, delete_horizon_ms=first.timestamp)
    assert b"".join(parts) == as_stored[HEADER_BYTES:]


def test_full_map_accepts_no_key_not_even_a_known_one() -> None:
    offsets = OffsetMap(2)
    records = [Record(offset, 0, key, b"v") for offset, key in enumerate((b"a", None, b"a", b"b", None, b"a"))]
    section = section_of(records)
    while section.collect_keys(offsets, 0, 100):
        pass
    assert content(offsets) == {b"a": 2, b"b": 3}
    assert offsets.latest_offset == 3


MALFORMED = {
    "length above the batch": (0, 0x7E),
    "negative length": (0, 0x01),
    "length below the batch": (0, 0x0C),
    "unterminated timestamp": (2, 0xFF),
    "key length above the record": (4, 0x7E),
    "unterminated key length": (4, 0xFE),
}


@pytest.mark.parametrize("compression", [NONE, GZIP])
@pytest.mark.parametrize(("position", "byte"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_record_is_rejected(position: int, byte: int, compression: int) -> None:
    good = build_batch([Record(0, 0, b"k", b"v")])
    body = bytearray(good[HEADER_BYTES:])
    body[position:] = bytes([byte]) * (len(body) - position) if byte >= 0x80 else bytes([byte]) + body[position + 1 :]
    if compression:
        import gzip

        body = bytearray(gzip.compress(body))
    batch = bytearray(good[:HEADER_BYTES]) + body
    header = read_header(batch)
    header.attributes |= compression
    message = "unreadable record in the batch at offset 0"
    with pytest.raises(InvalidRecords, match=message):
        Section(header, memoryview(batch)).collect_keys(OffsetMap(9), 0, 9)
    with pytest.raises(InvalidRecords, match=message):
        Section(header, memoryview(batch)).filter_records(OffsetMap(9), True, 9)


def test_truncated_compressed_section_is_rejected() -> None:
    batch = bytearray(build_batch([Record(0, 0, b"k", b"v")], compression=GZIP))
    batch[HEADER_BYTES + 12 :] = b""
    with pytest.raises(InvalidRecords, match="decompress"):
        Section(read_header(batch), memoryview(batch))
