"""Plots: a dot per attempt, and bands of the allowed times."""

import re

import msgspec
import pytest

from sluice.audit.judge.model.verdict import Fit, Series
from sluice.audit.report.plots import MOST_SERIES, Plot, Shape, attempts_plot, waits_plot
from tests.support.audit_results import HOSTILE, series


def _paths(plot: Plot, kind: str) -> list[str]:
    return [part.path for part in plot.parts if isinstance(part, Shape) and kind in part.kind.split()]


def _points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)]


def test_each_attempt_is_a_dot_by_its_outcome() -> None:
    plot = attempts_plot([series([100, 200, 400])])
    assert [len(_points(path)) for path in _paths(plot, "failed")] == [3]
    assert [len(_points(path)) for path in _paths(plot, "succeeded")] == [1]


def test_window_contains_only_a_conforming_next_attempt() -> None:
    """The first wait of 100 ms conforms; the second of 100 ms is too short."""
    plot = attempts_plot([series([100, 100])])
    windows = re.findall(r"M([\d.]+) [\d.]+H([\d.]+)", _paths(plot, "band")[0])
    dots = [x for path in _paths(plot, "dots") for x, _ in _points(path)]
    inside = [float(left) <= x <= float(right) for (left, right), x in zip(windows, sorted(dots)[1:], strict=True)]
    assert inside == [True, False]


def test_conforming_waits_lie_in_the_band() -> None:
    """The third attempt is too early."""
    plot = waits_plot([series([100, 200, 100])], None)
    corners = _points(_paths(plot, "band")[0])
    tops, bottoms = corners[:6:2], corners[:5:-2]  # one of both corners of each step
    waits = _points(_paths(plot, "wait")[0])
    inside = [top[1] <= y <= bottom[1] for (_, y), top, bottom in zip(waits, tops, bottoms, strict=True)]
    assert inside == [True, True, False]


@pytest.mark.parametrize(
    ("fit", "waits_ms"),
    [
        (Fit(model="exponential", base_ms=100, multiplier=2, cap_ms=400, jitter=0, confidence=1, waits=4),
         [100, 200, 400, 400]),
        (Fit(model="linear", base_ms=100, multiplier=50, cap_ms=None, jitter=0, confidence=1, waits=4),
         [100, 150, 200, 250]),
        (Fit(model="constant", base_ms=100, multiplier=1, cap_ms=None, jitter=0, confidence=1, waits=4), [100] * 4),
    ],
    ids=["exponential", "linear", "constant"],
)  # fmt: skip
def test_model_line_passes_through_the_waits(fit: Fit, waits_ms: list[float]) -> None:
    plot = waits_plot([series(waits_ms)], fit)
    assert _points(_paths(plot, "fit")[0]) == _points(_paths(plot, "wait")[0])


def test_model_line_ends_where_the_rule_restarts() -> None:
    again = msgspec.structs.replace(
        series([100, 200, 100, 200]), low_ms=[80, 160, 80, 160], high_ms=[120, 240, 120, 240]
    )
    fit = Fit(model="exponential", base_ms=100, multiplier=2, cap_ms=None, jitter=0, confidence=1, waits=4)
    assert len(_points(_paths(waits_plot([again], fit), "fit")[0])) == 2


def test_fit_of_hours_of_doubling_is_finite() -> None:
    fit = Fit(model="exponential", base_ms=100, multiplier=2, cap_ms=None, jitter=0, confidence=1, waits=2000)
    assert "inf" not in str(waits_plot([series([100.0] * 2000, banded=False)], fit))


NO_BAND = series([5.0, 5000.0], banded=False)
ENDLESS = Series(
    kind=NO_BAND.kind, key="", repetition=0, at_ms=[0, 100], waited_ms=[100], low_ms=[80], high_ms=[1e15], outcomes=[]
)


@pytest.mark.parametrize(
    "many",
    [[], [series([])], [NO_BAND], [ENDLESS], [series([-3.0, 0.0])], [series([100], key=HOSTILE)] * 40],
    ids=["nothing", "one attempt", "no rule", "a rule without an end", "waits below 0", "more than the drawn number"],
)
def test_anything_can_be_plotted(many: list[Series]) -> None:
    for plot in (attempts_plot(many), waits_plot(many, None)):
        assert not re.search(r"nan|inf", str(plot))
        assert len(_paths(plot, "lane")) <= MOST_SERIES
