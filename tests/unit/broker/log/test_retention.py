"""retention.bytes and retention.ms delete whole segments below the high watermark, oldest first."""

import pytest

from sluice.broker.log.retention import count_over_age, count_over_size
from sluice.broker.log.segment import Segment
from sluice.broker.log.segment_memory import allocate

NOW_MS = 1_700_000_000_000


def three_segments(*timestamps: int) -> list[Segment]:
    """Return segments of 100 bytes and 10 records each (offsets 0-29), last appended to at NOW_MS."""
    segments = []
    for number, timestamp in enumerate(timestamps or (-1, -1, -1)):
        segment = Segment(10 * number, allocate(100), NOW_MS)
        segment.append(bytes(100), 10 * number + 9, timestamp, NOW_MS)
        segments.append(segment)
    return segments


@pytest.mark.parametrize(
    ("retention_bytes", "high_watermark", "expected"),
    [
        pytest.param(-1, 30, 0, id="no limit keeps every segment"),
        pytest.param(300, 30, 0, id="a limit equal to the log size keeps every segment"),
        pytest.param(201, 30, 0, id="a segment with one byte inside the limit is kept"),
        pytest.param(200, 30, 1, id="a segment entirely above the limit is deleted"),
        pytest.param(1, 30, 2, id="a limit of one byte keeps the active segment"),
        pytest.param(0, 30, 3, id="a limit of 0 bytes deletes the active segment too"),
        pytest.param(0, 29, 2, id="a segment that crosses the high watermark is kept"),
        pytest.param(0, 0, 0, id="nothing is deleted while the high watermark is 0"),
    ],
)
def test_count_over_size(retention_bytes: int, high_watermark: int, expected: int) -> None:
    assert count_over_size(three_segments(), 300, retention_bytes, high_watermark) == expected


@pytest.mark.parametrize(
    ("ages_ms", "retention_ms", "high_watermark", "expected"),
    [
        pytest.param((9, 8, 7), -1, 30, 0, id="no limit keeps every segment"),
        pytest.param((9, 8, 7), 9, 30, 0, id="a segment of exactly the maximum age is kept"),
        pytest.param((9, 8, 7), 8, 30, 1, id="an older segment is deleted"),
        pytest.param((9, 8, 7), 6, 30, 3, id="the active segment is deleted too"),
        pytest.param((1, 9, 9), 5, 30, 0, id="a young segment protects the segments after it"),
        pytest.param((9, 8, 7), 0, 15, 1, id="a segment that crosses the high watermark is kept"),
        pytest.param((9, -50, 7), 5, 30, 1, id="a segment with a future timestamp is kept"),
    ],
)
def test_count_over_age(ages_ms: tuple[int, ...], retention_ms: int, high_watermark: int, expected: int) -> None:
    segments = three_segments(*(NOW_MS - age_ms for age_ms in ages_ms))
    assert count_over_age(segments, NOW_MS, retention_ms, high_watermark) == expected


def test_age_of_a_segment_without_timestamps_counts_from_its_last_append() -> None:
    assert count_over_age(three_segments(), NOW_MS + 100, 100, 30) == 0
    assert count_over_age(three_segments(), NOW_MS + 101, 100, 30) == 3


def test_empty_active_segment_is_kept() -> None:
    segments = [*three_segments(), Segment(30, allocate(0), NOW_MS)]
    assert count_over_size(segments, 300, 0, 30) == 3
    assert count_over_age(segments, NOW_MS + 10, 1, 30) == 3
