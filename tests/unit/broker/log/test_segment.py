"""Segments in memory: positions of batches, spans to read, truncation, and memory."""

import gc
from bisect import bisect_right

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.log.segment import INDEX_ENTRY_BYTES, MAX_RELATIVE_OFFSET, Segment
from sluice.broker.log.segment_memory import MAPPED_FROM_BYTES, allocate

NOW_MS = 1_700_000_000_000


def segment_of(batches: list[tuple[int, int]], base_offset: int = 100) -> Segment:
    """Return a segment of batches given as (records, bytes); each is filled with its index."""
    segment = Segment(base_offset, allocate(sum(size for _, size in batches)), NOW_MS)
    for number, (records, size) in enumerate(batches):
        segment.append(bytes([number % 256]) * size, segment.next_offset + records - 1, -1, NOW_MS)
    return segment


# Offsets 100-101, 102, 103-106; positions 0, 10, 30, 60.
THREE = [(2, 10), (1, 20), (4, 30)]


SPANS = {
    "every batch fits": (100, 1000, 107, False, (0, 60, 107)),
    "the upper offset is beyond the segment": (100, 1000, 999, False, (0, 60, 107)),
    "an offset inside a batch reads from its start": (101, 1000, 107, False, (0, 60, 107)),
    "an offset inside the last batch": (105, 1000, 107, False, (30, 60, 107)),
    "the upper offset is the start of a batch": (100, 1000, 103, False, (0, 30, 103)),
    "a batch that contains the upper offset is excluded": (100, 1000, 105, False, (0, 30, 103)),
    "even the first batch is excluded if it contains the upper offset": (103, 1000, 105, True, (30, 30, 103)),
    "a batch that does not fit is excluded whole": (100, 59, 107, False, (0, 30, 103)),
    "the last batch ends at the size limit": (100, 60, 107, False, (0, 60, 107)),
    "a middle batch ends at the size limit": (100, 30, 107, False, (0, 30, 103)),
    "the first batch does not fit": (100, 9, 107, False, (0, 0, 100)),
    "with at_least_one the first batch is returned although it does not fit": (100, 9, 107, True, (0, 10, 102)),
    "with at_least_one the last batch is returned although it does not fit": (104, 9, 107, True, (30, 60, 107)),
    "a limit of 0 bytes returns nothing": (100, 0, 107, False, (0, 0, 100)),
    "a negative limit returns nothing": (102, -5, 107, False, (10, 10, 102)),
    "with at_least_one a negative limit returns one batch": (102, -5, 107, True, (10, 30, 103)),
}


@pytest.mark.parametrize(("offset", "max_bytes", "up_to_offset", "at_least_one", "expected"), SPANS.values(), ids=SPANS)
def test_span_of_adjacent_batches(
    offset: int, max_bytes: int, up_to_offset: int, at_least_one: bool, expected: tuple[int, int, int]
) -> None:
    assert segment_of(THREE).span(offset, max_bytes, up_to_offset, at_least_one) == expected


@given(
    batches=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 40)), min_size=1, max_size=30),
    data=st.data(),
    max_bytes=st.integers(0, 600),
    at_least_one=st.booleans(),
)
def test_span_equals_adding_one_batch_after_the_other(
    batches: list[tuple[int, int]], data: st.DataObject, max_bytes: int, at_least_one: bool
) -> None:
    segment = segment_of(batches)
    offset = data.draw(st.integers(100, segment.next_offset - 1))
    up_to_offset = data.draw(st.integers(offset, segment.next_offset + 2))
    starts, ends, lasts = [], [], []
    position, next_offset = 0, 100
    bases = []
    for records, size in batches:
        bases.append(next_offset)
        starts.append(position)
        position += size
        next_offset += records
        ends.append(position)
        lasts.append(next_offset - 1)
    first = bisect_right(bases, offset) - 1
    start = end = starts[first]
    after = bases[first]
    for number in range(first, len(batches)):
        fits = ends[number] - start <= max_bytes or (at_least_one and number == first)
        if not fits or lasts[number] >= up_to_offset:
            break
        end, after = ends[number], lasts[number] + 1
    assert segment.span(offset, max_bytes, up_to_offset, at_least_one) == (start, end, after)


# Offsets 110-111, 120, 125-129; positions 0, 10, 30, 60.
GAPS = ((110, 111, 10), (120, 120, 20), (125, 129, 30))


def segment_with_gaps() -> Segment:
    segment = Segment(100, allocate(60), NOW_MS)
    for number, (_, last_offset, size) in enumerate(GAPS):
        segment.append(bytes([number]) * size, last_offset, -1, NOW_MS)
    return segment


GAP_SPANS = {
    "an offset before the first batch": (100, 1000, 130, (0, 60, 130)),
    "an offset in a gap reads from the next batch": (112, 1000, 130, (10, 60, 130)),
    "an offset in the last gap reads from the last batch": (121, 1000, 130, (30, 60, 130)),
    "an offset after the last batch returns nothing": (130, 1000, 140, (60, 60, 130)),
    "an upper offset in a gap": (100, 1000, 115, (0, 10, 112)),
    "an upper offset before the first batch": (100, 1000, 105, (0, 0, 100)),
    "a batch that fits exactly": (112, 20, 130, (10, 30, 121)),
    "a batch that does not fit": (112, 19, 130, (10, 10, 112)),
}


@pytest.mark.parametrize(("offset", "max_bytes", "up_to_offset", "expected"), GAP_SPANS.values(), ids=GAP_SPANS)
def test_span_over_gaps(offset: int, max_bytes: int, up_to_offset: int, expected: tuple[int, int, int]) -> None:
    assert segment_with_gaps().span(offset, max_bytes, up_to_offset, False) == expected


@pytest.mark.parametrize(
    ("offset", "size", "next_offset"), [(126, 30, 121), (121, 30, 121), (120, 10, 112), (111, 0, 100), (130, 60, 130)]
)
def test_truncation_removes_whole_batches(offset: int, size: int, next_offset: int) -> None:
    segment = segment_with_gaps()
    segment.truncate_to(offset)
    assert (segment.size, segment.next_offset) == (size, next_offset)
    assert segment.span(100, 1000, 1000, False) == (0, size, next_offset)
    assert not segment.append(b"x", 200, -1, NOW_MS), "a truncated segment rejects appends: a reader may hold its end"


def test_truncation_recomputes_the_largest_timestamp() -> None:
    segment = Segment(0, allocate(10), NOW_MS)
    for offset, timestamp in enumerate([5, 9, 7]):
        segment.append(b"x", offset, timestamp, NOW_MS)
    segment.truncate_to(1)
    assert segment.max_timestamp == 5
    segment.truncate_to(0)
    assert segment.max_timestamp == -1


def test_slice_returns_adjacent_batches() -> None:
    segment = segment_of(THREE)
    start, end, _ = segment.span(102, 1000, 107, False)
    assert segment.slice(start, end) == b"\1" * 20 + b"\2" * 30


def test_append_accepts_a_batch_that_fits_exactly_and_rejects_a_larger_one() -> None:
    segment = Segment(0, allocate(100), NOW_MS)
    assert segment.append(bytes(60), 0, -1, NOW_MS)
    assert not segment.append(bytes(41), 1, -1, NOW_MS)
    assert (segment.size, segment.next_offset) == (60, 1), "a rejected batch changes nothing"
    assert segment.append(bytes(40), 1, -1, NOW_MS)


def test_append_rejects_a_relative_offset_above_four_bytes() -> None:
    segment = Segment(1000, allocate(100), NOW_MS)
    assert not segment.append(bytes(10), 1001 + MAX_RELATIVE_OFFSET, -1, NOW_MS)
    assert segment.append(bytes(10), 1000 + MAX_RELATIVE_OFFSET, -1, NOW_MS)


def test_resident_bytes_count_the_index() -> None:
    assert segment_of(THREE).resident_bytes() == 60 + 3 * INDEX_ENTRY_BYTES


def test_slice_outlives_its_segment() -> None:
    segment = segment_of([(1, MAPPED_FROM_BYTES)])
    part = segment.slice(5, 10)
    del segment
    gc.collect()
    assert part == bytes(5)
    assert part.readonly is False  # the segment's memory, not a copy
