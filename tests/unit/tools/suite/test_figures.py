"""How much of a phase a broker had a request to answer."""

import pytest

from tools.suite.figures import Interval, covered

INTERVALS = {
    "none": ([], 0),
    "one": ([(12, 15)], 3),
    "two apart": ([(12, 15), (17, 18)], 4),
    "two that overlap, in any order": ([(13, 17), (12, 15)], 5),
    "one within another": ([(12, 18), (13, 15)], 6),
    "only the part within the phase": ([(5, 12), (19, 30)], 3),
    "outside the phase": ([(1, 5), (30, 31)], 0),
}


@pytest.mark.parametrize(("intervals", "expected"), INTERVALS.values(), ids=INTERVALS)
def test_time_is_counted_once(intervals: list[Interval], expected: int) -> None:
    assert covered((10, 20), intervals) == expected
