"""What retention.bytes and retention.ms let go: whole segments, oldest first, none above the high watermark."""

import pytest

from sluice.broker.log.retention import count_over_age, count_over_size
from sluice.broker.log.segment import Segment
from sluice.broker.log.segment_memory import allocate

NOW_MS = 1_700_000_000_000


def three_segments(*timestamps: int) -> list[Segment]:
    """Of 100 bytes and 10 records each: offsets 0-9, 10-19, 20-29. Last appended to at NOW_MS."""
    segments = []
    for number, timestamp in enumerate(timestamps or (-1, -1, -1)):
        segment = Segment(10 * number, allocate(100), NOW_MS)
        segment.append(bytes(100), 10 * number + 9, timestamp, NOW_MS)
        segments.append(segment)
    return segments


@pytest.mark.parametrize(
    ("retention_bytes", "high_watermark", "expected"),
    [
        pytest.param(-1, 30, 0, id="no bound keeps all"),
        pytest.param(300, 30, 0, id="as large as the log keeps all"),
        pytest.param(201, 30, 0, id="a segment that holds a byte to keep is kept"),
        pytest.param(200, 30, 1, id="a segment that is all excess goes"),
        pytest.param(1, 30, 2, id="one byte keeps the active segment"),
        pytest.param(0, 30, 3, id="no bytes let the active segment go, too"),
        pytest.param(0, 29, 2, id="a segment not whole below the high watermark stays"),
        pytest.param(0, 0, 0, id="nothing goes before the high watermark moves"),
    ],
)
def test_by_size(retention_bytes: int, high_watermark: int, expected: int) -> None:
    assert count_over_size(three_segments(), 300, retention_bytes, high_watermark) == expected


@pytest.mark.parametrize(
    ("ages_ms", "retention_ms", "high_watermark", "expected"),
    [
        pytest.param((9, 8, 7), -1, 30, 0, id="no bound keeps all"),
        pytest.param((9, 8, 7), 9, 30, 0, id="as old as allowed is kept"),
        pytest.param((9, 8, 7), 8, 30, 1, id="older than allowed goes"),
        pytest.param((9, 8, 7), 6, 30, 3, id="the active segment goes, too"),
        pytest.param((1, 9, 9), 5, 30, 0, id="a young segment keeps those after it"),
        pytest.param((9, 8, 7), 0, 15, 1, id="a segment not whole below the high watermark stays"),
        pytest.param((9, -50, 7), 5, 30, 1, id="a timestamp in the future keeps its segment"),
    ],
)
def test_by_age(ages_ms: tuple[int, ...], retention_ms: int, high_watermark: int, expected: int) -> None:
    segments = three_segments(*(NOW_MS - age_ms for age_ms in ages_ms))
    assert count_over_age(segments, NOW_MS, retention_ms, high_watermark) == expected


def test_without_timestamps_age_counts_from_the_last_append() -> None:
    assert count_over_age(three_segments(), NOW_MS + 100, 100, 30) == 0
    assert count_over_age(three_segments(), NOW_MS + 101, 100, 30) == 3


def test_an_empty_active_segment_stays() -> None:
    segments = [*three_segments(), Segment(30, allocate(0), NOW_MS)]
    assert count_over_size(segments, 300, 0, 30) == 3
    assert count_over_age(segments, NOW_MS + 10, 1, 30) == 3
