"""Incremental decoding of a batch: the result equals that of the plain reader in `protocol.records`."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.client.consumer.fetch.batch_records import BatchRecords
from sluice.client.consumer.record import ConsumerRecord
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.records.batch import CREATE_TIME, HEADER_BYTES, LOG_APPEND_TIME, read_header
from sluice.protocol.records.build import build_batch, build_transaction_marker
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import Record, iter_records

P0 = TopicPartition("t", 0)
V = b"v" * 100


def alike(**others: Record) -> list[Record]:
    """Return many records of one size, except `others`, which are keyed by "at" and their number."""
    records = [Record(number, 1000, b"k", V) for number in range(30)]
    for at, record in others.items():
        number = int(at.removeprefix("at"))
        records[number] = msgspec.structs.replace(record, offset=number)
    return records


def opened(batch: bytes) -> BatchRecords:
    view = memoryview(batch)
    return BatchRecords(P0, read_header(view), view)


def taken(batch: bytes, *, step: int = 10_000, first_offset: int = 0) -> list[ConsumerRecord]:
    """Return all records, read `step` at a time."""
    reader = opened(batch)
    records: list[ConsumerRecord] = []
    while reader.left:
        reader.take(records, step, first_offset)
    return records


def of(*offsets: int) -> list[Record]:
    return [Record(offset, 1000, b"k", V) for offset in offsets]


# fmt: off
SHAPES = {
    "one record": of(0),
    "offsets of one, two and three bytes": of(0, 63, 64, 8191, 8192, 8193, 2**20),
    "timestamps of one, two and more bytes": [
        Record(number, 10**12 + delta, None, V) for number, delta in enumerate((0, 63, 64, 8191, 8192, 10**9))
    ],
    "backward timestamps": [
        Record(number, 10**12 + delta, None, V) for number, delta in enumerate((0, -1, -64, -65, -8192, -8193, -10**9))
    ],
    "lengths of one, two and three bytes": [
        Record(number, 1000, None, bytes(size)) for number, size in enumerate((0, 50, 64, 8000, 8192, 10**5, 3))
    ],
    "keys of changing presence and length": [
        Record(number, 1000, key, V) for number, key in enumerate((None, b"", b"k", b"k", None, None, b"j" * 200))
    ],
    "null values": [Record(number, 1000, b"k", value) for number, value in enumerate((V, None, None, V, b""))],
    "same length, some with headers": [
        Record(number, 1000, b"k", b"v", headers) for number, headers in enumerate(
            ((), (("h", b"1"),), (), (("h", None), ("ä", b"")), ())
        )
    ],
    "equal sizes, offset deltas of one and two bytes": [Record(offset, 1000, b"k", V) for offset in range(8250)],
    "equal sizes, missing offsets": [Record(number * 3, 1000, b"k", V) for number in range(60)],
    "equal sizes, changing timestamps": [Record(number, 1000 + number * 2, b"k", V) for number in range(60)],
    "equal sizes, backward timestamps": [Record(number, 1000 - number % 3, b"k", V) for number in range(60)],
    "equal sizes, no keys": [Record(number, 1000, None, V) for number in range(20)],
    "equal sizes, empty keys": [Record(number, 1000, b"", V) for number in range(20)],
    "equal sizes, no values": [Record(number, 1000, b"k", None) for number in range(20)],
    "equal sizes, empty values": [Record(number, 1000, b"k", b"") for number in range(20)],
    "equal sizes, one longer record": alike(at15=Record(0, 1000, b"k", V + b"v")),
    "equal sizes, one with a longer key and a shorter value": alike(at15=Record(0, 1000, b"kk", V[1:])),
    "equal sizes, one with no key and a longer value": alike(at15=Record(0, 1000, None, V + b"v")),
    "equal sizes, one without a value": alike(at15=Record(0, 1000, b"k" * 101, None)),
    "equal sizes, one with a two-byte timestamp and a shorter value": alike(at15=Record(0, 1100, b"k", V[1:])),
    "equal sizes, one with headers and a shorter value": alike(at15=Record(0, 1000, b"k", V[4:], (("h", b"1"),))),
    "pairs of equal size": [Record(number, 1000, b"k", bytes(100 + number // 2 % 3)) for number in range(60)],
}
# fmt: on


@pytest.mark.parametrize("compression", [0, 3], ids=["plain", "lz4"])
@pytest.mark.parametrize("step", [1, 2, 10_000], ids=["one by one", "two by two", "at once"])
@pytest.mark.parametrize("records", SHAPES.values(), ids=SHAPES)
def test_records_equal_those_of_the_plain_reader(records: list[Record], step: int, compression: int) -> None:
    batch = build_batch(records, compression=compression, partition_leader_epoch=7)
    expected = [
        ConsumerRecord("t", 0, one.offset, one.timestamp, CREATE_TIME, one.key, one.value, tuple(one.headers), 7)
        for one in iter_records(batch)
    ]
    assert taken(batch, step=step) == expected
    assert len(expected) == len(records)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0, 0, 1, -1, 64, 9000]),
            st.sampled_from([b"k", b"k", b"k", b"kk", b"", None]),
            st.sampled_from([b"", b"v", b"vv", V, V, V, V + b"v", None]),
            st.sampled_from([(), (), (), (), (("h", b""),)]),
            st.integers(1, 12),  # of these in a row
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([1, 7, 10_000]),
    st.integers(0, 20),
)
def test_record_after_a_run_of_equal_records_is_decoded_correctly(
    rows: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]],
    step: int,
    first_offset: int,
) -> None:
    each = [row for row in rows for _ in range(row[4])]
    records = [
        Record(number, 10**6 + delta, key, value, headers)
        for number, (delta, key, value, headers, _) in enumerate(each)
    ]
    found = taken(build_batch(records), step=step, first_offset=first_offset)
    assert [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in found] == [
        (one.offset, one.timestamp, one.key, one.value, one.headers) for one in records[first_offset:]
    ]


def test_records_before_the_position_are_skipped_and_not_counted() -> None:
    reader = opened(build_batch(of(5, 6, 7, 8, 9), base_offset=5))
    records: list[ConsumerRecord] = []
    reader.take(records, 2, 7)
    assert [record.offset for record in records] == [7, 8]
    assert reader.left == 1


def test_log_append_time_applies_to_all_records() -> None:
    batch = build_batch(of(*range(9)), timestamp_type=LOG_APPEND_TIME, log_append_time=5000)
    assert [(one.timestamp, one.timestamp_type) for one in taken(batch)] == [(5000, 1)] * 9, "1 is Kafka's id"


@pytest.mark.parametrize(("kind", "is_abort"), [(0, True), (1, False)], ids=["an abort", "a commit"])
def test_control_records_return_the_transaction_outcome(kind: int, is_abort: bool) -> None:
    batch = build_transaction_marker(kind, offset=3, timestamp=0, producer_id=1, producer_epoch=0, coordinator_epoch=0)
    assert opened(batch).is_abort_marker() is is_abort


def _spoiled(batch: bytes, at: int, byte: int) -> bytes:
    return batch[: HEADER_BYTES + at] + bytes((byte,)) + batch[HEADER_BYTES + at + 1 :]


def read_as_far_as_it_goes(batch: bytes, step: int) -> tuple[list[ConsumerRecord], str]:
    """Return the records before the first error, and the error."""
    reader = opened(batch)
    records: list[ConsumerRecord] = []
    try:
        while reader.left:
            reader.take(records, step, 0)
    except InvalidRecords as error:
        return records, str(error)
    return records, ""


@given(st.integers(0, 12 * 17 - 1), st.integers(0, 255))
def test_corrupt_byte_in_a_run_of_equal_records_fails_as_in_record_by_record_decoding(at: int, byte: int) -> None:
    batch = build_batch([Record(offset, 1000, b"k", b"v" * 9) for offset in range(12)])
    assert len(batch) == HEADER_BYTES + 12 * 17
    spoiled = _spoiled(batch, at, byte)
    assert read_as_far_as_it_goes(spoiled, 100) == read_as_far_as_it_goes(spoiled, 1)


# Of a record of key "k" and value "v": length, attributes, time, offset, 1 byte and "k", 1 byte and "v", no headers.
@pytest.mark.parametrize(
    ("spoil", "good"),
    [
        pytest.param(lambda batch: batch[:HEADER_BYTES], 0, id="no records"),
        pytest.param(lambda batch: batch[:-1], 1, id="the last byte is missing"),
        pytest.param(lambda batch: _spoiled(batch, 9, 30), 1, id="a length beyond the end"),
        pytest.param(lambda batch: _spoiled(batch, 13, 6), 1, id="a key beyond its record"),
        pytest.param(lambda batch: _spoiled(batch, 17, 1), 1, id="a negative number of headers"),
        pytest.param(lambda batch: _spoiled(batch, 17, 4), 1, id="missing headers"),
    ],
)
def test_undecodable_record_is_reported_after_the_readable_ones(spoil: Callable[[bytes], bytes], good: int) -> None:
    whole = build_batch([Record(offset, 1000, b"k", b"v") for offset in (0, 1)])
    reader = BatchRecords(P0, read_header(memoryview(whole)), memoryview(spoil(whole)))
    records: list[ConsumerRecord] = []
    with pytest.raises(InvalidRecords, match=f"record {good} of the batch at offset 0 cannot be read"):
        reader.take(records, 10, 0)
    assert [record.offset for record in records] == list(range(good))
