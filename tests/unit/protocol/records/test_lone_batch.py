"""The pattern of a batch with one plain record: it matches all such batches and no others."""

from sluice.protocol.records.batch import HEADER_BYTES
from sluice.protocol.records.build import build_batch, encode_record
from sluice.protocol.records.lone_batch import PLAIN, SMALLEST_BATCH, lone_batches, record_start
from sluice.protocol.records.record import Record
from sluice.protocol.records.walk import walk


def test_single_record_batch_matches_the_pattern() -> None:
    wrong = []
    for size in (*range(300), *range(8150, 8250), 1_048_500, 1_048_600):
        section = encode_record(Record(0, 0, None, bytes(size)), 0, 0)
        if not (section.startswith(record_start(len(section))) and section[-1] == 0):
            wrong.append(size)
    assert wrong == []


def test_matching_batch_is_a_single_record_batch() -> None:
    wrong = []
    for size in (*range(1, 300), *range(8150, 8250), 16_384):
        start = record_start(size)
        section = start + b"\xff" * (size - len(start) - 1) + b"\0"
        no_record_has_this_size = start == b"\1"
        if (walk(section, 1, null_keys=True) == (0, 0)) == no_record_has_this_size:
            wrong.append(size)
    assert wrong == []
    assert record_start(0) == b"\1"


def test_cached_batch_of_any_size_is_read_as_written() -> None:
    wrong = []
    for size in range(900):
        batch = build_batch(
            [Record(0, 1_700_000_000_000, None, bytes(size))], producer_id=2**40, producer_epoch=7, base_sequence=9
        )
        read, place, begin = lone_batches[len(batch)]
        parts = read(batch)
        written = (place, 2, parts[2], PLAIN, 1_700_000_000_000, 1_700_000_000_000, 2**40, 7, 9, begin, 0)
        if parts != written or int.from_bytes(batch[17:21], "big") != parts[2]:
            wrong.append(size)
    assert wrong == []


def test_minimum_size_holds_an_empty_record() -> None:
    assert len(build_batch([Record(0, 0, None, None)])) == SMALLEST_BATCH == HEADER_BYTES + 7


def test_batch_too_large_for_the_cache_never_matches() -> None:
    batch = build_batch([Record(0, 0, None, bytes(2000))])
    read, place, begin = lone_batches[len(batch)]
    assert (place, begin) == (b"", b"")
    assert read(batch)[0] == batch[:12]
    assert len(batch) not in lone_batches, "client-chosen sizes would fill the table"
