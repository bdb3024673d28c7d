"""The statistics of samples, with small examples; the vectors cover them in full."""

from math import isnan, nan

import pytest

from sluice.quotas.sensor import SampledStat
from sluice.quotas.stats import Avg, Max

# Recorded at 0, 500 and 1500; two samples of 1 s: the first expires 2 s after its last event at 500.
VALUES = [(0, 4.0), (500, -2.0), (1500, 7.0)]
FIGURES: dict[str, tuple[type[SampledStat], float, float, float]] = {
    # name: statistic, value before any event, at 1500, at 2500
    "a windowed sum": (SampledStat, 0.0, 9.0, 7.0),
    "an average, NaN without events": (Avg, nan, 3.0, 7.0),
    "a maximum, NaN without events": (Max, nan, 7.0, 7.0),
}


@pytest.mark.parametrize(("kind", "empty", "at_1500", "at_2500"), FIGURES.values(), ids=FIGURES)
def test_figure(kind: type[SampledStat], empty: float, at_1500: float, at_2500: float) -> None:
    found = kind(2, 1000).measure(0)
    assert found == empty or (isnan(found) and isnan(empty))
    stat = kind(2, 1000)
    for now_ms, value in VALUES:
        stat.record(value, now_ms)
    assert stat.measure(1500) == at_1500
    assert stat.measure(2500) == at_2500


def test_event_window_closes_a_sample_before_its_time_window_ends() -> None:
    latest = SampledStat(1, 1000, event_window=2)
    for value in (1.0, 2.0, 4.0, 8.0, 16.0):
        latest.record(value, 0)
    assert latest.measure(0) == 16.0 + 4.0 + 8.0, "two slots: the full one and the open one, which reuses the first"


def test_silence_makes_a_maximum_nan_again() -> None:
    greatest = Max(2, 1000)
    greatest.record(5.0, 0)
    assert isnan(greatest.peek(2000))
    assert isnan(greatest.measure(2000))
