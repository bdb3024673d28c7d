"""The other statistics, with small examples; the vectors cover them in full."""

from math import isnan, nan
from sys import float_info

import pytest

from sluice.quotas.sensor import SampledStat
from sluice.quotas.stats import Avg, CumulativeCount, CumulativeSum, Max, Min, SimpleRate, WindowedCount, WindowedSum

Stat = type[SampledStat | CumulativeSum]

# Recorded at 0, 500 and 1500; two samples of 1 s: the first expires 2 s after its last event at 500.
VALUES = [(0, 4.0), (500, -2.0), (1500, 7.0)]
FIGURES: dict[str, tuple[Stat, float, float, float]] = {
    # name: statistic, value before any event, at 1500, at 2500
    "a windowed sum": (WindowedSum, 0.0, 9.0, 7.0),
    "a windowed count": (WindowedCount, 0.0, 3.0, 1.0),
    "an average, NaN without events": (Avg, nan, 3.0, 7.0),
    "a maximum, NaN without events": (Max, nan, 7.0, 7.0),
    "a minimum, NaN without events": (Min, nan, -2.0, 7.0),
    "a simple rate over the time since the oldest sample opened": (SimpleRate, 0.0, 6.0, 7.0),
    "a cumulative sum never expires": (CumulativeSum, 0.0, 9.0, 9.0),
    "a cumulative count never expires": (CumulativeCount, 0.0, 3.0, 3.0),
}


def stat_of(kind: Stat) -> SampledStat | CumulativeSum:
    return kind() if issubclass(kind, CumulativeSum) else kind(2, 1000)


@pytest.mark.parametrize(("kind", "empty", "at_1500", "at_2500"), FIGURES.values(), ids=FIGURES)
def test_figure(kind: Stat, empty: float, at_1500: float, at_2500: float) -> None:
    found = stat_of(kind).measure(0)
    assert found == empty or (isnan(found) and isnan(empty))
    stat = stat_of(kind)
    for now_ms, value in VALUES:
        stat.record(value, now_ms)
    assert stat.measure(1500) == at_1500
    assert stat.measure(2500) == at_2500


def test_event_window_closes_a_sample_before_its_time_window_ends() -> None:
    latest = WindowedSum(1, 1000, event_window=2)
    for value in (1.0, 2.0, 4.0, 8.0, 16.0):
        latest.record(value, 0)
    assert latest.measure(0) == 16.0 + 4.0 + 8.0, "two slots: the full one and the open one, which reuses the first"


def test_silence_makes_a_maximum_nan_again() -> None:
    greatest = Max(2, 1000)
    greatest.record(5.0, 0)
    assert isnan(greatest.peek(2000))
    assert isnan(greatest.measure(2000))


def test_minimum_is_at_most_the_largest_finite_number() -> None:
    least = Min(2, 1000)
    least.record(float("inf"), 0)
    assert least.measure(0) == float_info.max
