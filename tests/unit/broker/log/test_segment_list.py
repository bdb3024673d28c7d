"""The ordered segments of one log: reads, removal and replacement."""

import pytest

from sluice.broker.log.segment import Segment
from sluice.broker.log.segment_list import SegmentList, largest_timestamp
from sluice.broker.log.segment_memory import allocate

NOW_MS = 1_700_000_000_000
BATCH_BYTES = 10


def three_segments() -> SegmentList:
    """Return segments of two batches with two records each: offsets 0-3, 4-7 and, after a gap, 20-23."""
    segments = SegmentList()
    for base_offset in (0, 4, 20):
        segment = Segment(base_offset, allocate(2 * BATCH_BYTES), NOW_MS)
        for last_offset in (base_offset + 1, base_offset + 3):
            segment.append(bytes([last_offset]) * BATCH_BYTES, last_offset, -1, NOW_MS)
        segments.append(segment)
    return segments


READS = {
    "at the end of the active segment": (22, 100, 24, [23], 24),
    "the whole active segment": (20, 100, 24, [21, 23], 24),
    "through every segment": (0, 100, 24, [1, 3, 5, 7, 21, 23], 24),
    "up to the size limit": (0, 30, 24, [1, 3, 5], 6),
    "up to the upper offset": (2, 100, 6, [3, 5], 6),
    "from an offset in a gap": (10, 100, 24, [21, 23], 24),
    "one batch that is larger than the size limit": (0, 5, 24, [1], 2),
}


@pytest.fixture
def segments() -> SegmentList:
    return three_segments()


@pytest.mark.parametrize(("offset", "max_bytes", "up_to_offset", "batches", "next_offset"), READS.values(), ids=READS)
def test_read_continues_across_segments(
    offset: int, max_bytes: int, up_to_offset: int, batches: list[int], next_offset: int, segments: SegmentList
) -> None:
    found = segments.read(offset, max_bytes, up_to_offset, True)
    data = b"".join(found.parts)
    assert [data[start] for start in range(0, len(data), BATCH_BYTES)] == batches
    assert (found.size, found.next_offset) == (len(data), next_offset)
    assert segments.size_available(offset, max_bytes, up_to_offset, True) == len(data)


@pytest.mark.parametrize("offset", [0, 22])
def test_batch_above_the_size_limit_is_read_only_if_one_batch_is_required(offset: int, segments: SegmentList) -> None:
    assert segments.read(offset, 5, 24, False).parts == []
    assert segments.size_available(offset, 5, 24, False) == 0


MAXIMA = [(0, 24, 1000, 60), (0, 24, 15, 15), (4, 24, 1000, 40), (22, 24, 99, 10)]


@pytest.mark.parametrize(("offset", "up_to_offset", "at_most", "size"), MAXIMA)
def test_bytes_between_stops_at_the_maximum(offset: int, up_to_offset: int, at_most: int, size: int) -> None:
    assert three_segments().bytes_between(offset, up_to_offset, at_most) == size


def test_largest_timestamp_falls_back_to_the_last_append_without_record_timestamps() -> None:
    parts = [Segment(base_offset, allocate(100), NOW_MS) for base_offset in (0, 2)]
    parts[1].append(b"a", 2, -1, NOW_MS + 5)
    assert largest_timestamp(parts) == NOW_MS + 5
    parts[0].append(b"b", 0, 77, NOW_MS + 6)
    parts[0].append(b"c", 1, 33, NOW_MS + 7)
    assert largest_timestamp(parts) == 77


PARTS = {
    "segments of one part": ((False, False, False), [(0, 4), (4, 20), (20, 24)], 1),
    "a full segment of two parts": ((False, True, False), [(0, 20), (20, 24)], 1),
    "an active segment of two parts": ((False, False, True), [(0, 4), (4, 24)], 2),
    "the first part was evicted": ((True, True, True), [(0, 24)], 3),
}


@pytest.mark.parametrize(("continues", "whole", "active"), PARTS.values(), ids=PARTS)
def test_parts_of_whole_segments(continues: tuple[bool, ...], whole: list[tuple[int, int]], active: int) -> None:
    segments = three_segments()
    for segment, flag in zip(segments.ordered, continues, strict=True):
        segment.continues = flag
    found = list(segments.whole(24))
    assert [(each.parts[0].base_offset, each.end_offset) for each in found] == whole
    assert [each.is_active for each in found] == [False] * (len(whole) - 1) + [True]
    assert sum(each.size for each in found) == 6 * BATCH_BYTES
    assert segments.active_parts() == found[-1].parts
    assert len(found[-1].parts) == active


def test_empty_list_has_no_whole_segments() -> None:
    assert list(SegmentList().whole(0)) == []
    assert SegmentList().active_parts() == []


def test_pop_from_removes_the_newest_segment_first(segments: SegmentList) -> None:
    removed = []
    while (segment := segments.pop_from(4)) is not None:
        removed.append(segment.base_offset)
    assert removed == [20, 4]
    assert [segment.base_offset for segment in segments.ordered] == [0]


def test_oldest_segment_ends_at_the_start_of_the_next(segments: SegmentList) -> None:
    ends = []
    while segments.ordered:
        ends.append(segments.end_of_oldest(24))
        segments.drop_oldest()
    assert ends == [4, 20, 24]


def test_group_is_replaced_if_it_is_complete(segments: SegmentList) -> None:
    first, second, active = segments.ordered
    cleaned = Segment(0, allocate(BATCH_BYTES), NOW_MS)
    assert not segments.has_group([second, active])
    assert not segments.has_group([first, active])
    assert segments.has_group([first, second])
    assert segments.end_of_group([first, second]) == 20
    segments.replace_group([first, second], cleaned)
    assert segments.ordered == [cleaned, active]
    assert list(segments.before(20)) == [cleaned]
    assert segments.with_records() == [active]
    assert not segments.has_group([first, second])
