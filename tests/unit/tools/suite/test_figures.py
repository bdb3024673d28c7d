"""How much of a phase a broker had a request to answer."""

import pytest

from tools.suite.figures import Interval, covered


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([(12, 15)], 3, id="one"),
        pytest.param([(12, 15), (17, 18)], 4, id="two apart"),
        pytest.param([(13, 17), (12, 15)], 5, id="two that overlap, in any order"),
        pytest.param([(12, 18), (13, 15)], 6, id="one within another"),
        pytest.param([(5, 12), (19, 30)], 3, id="only the part within the phase"),
        pytest.param([(1, 5), (30, 31)], 0, id="outside the phase"),
    ],
)
def test_time_is_counted_once(intervals: list[Interval], expected: int) -> None:
    assert covered((10, 20), intervals) == expected
