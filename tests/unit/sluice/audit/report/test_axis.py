"""Plot axes: positions of values, and round ticks."""

import pytest

from sluice.audit.report.plots import Axis, axis_of


@pytest.mark.parametrize(
    ("values", "is_log"),
    [([100.0, 1000.0], False), ([1.0, 30.0], False), ([1.0, 31.0], True), ([], False), ([0.0, -5.0], False),
     ([0.0, 10.0, 10_000.0], True)],
)  # fmt: skip
def test_widely_spread_values_have_a_logarithmic_axis(values: list[float], is_log: bool) -> None:
    assert axis_of(values, 0, 100).is_log is is_log


@pytest.mark.parametrize("values", [[100.0, 1000.0], [0.3, 40_000.0], [7.0], [5.0, 5e7]], ids=str)
def test_values_are_placed_in_order(values: list[float]) -> None:
    axis = axis_of(values, 0, 100)
    places = [axis.at(value) for value in values]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)


def test_outside_values_are_clamped_to_the_edge() -> None:
    axis = axis_of([1.0, 1000.0], 0, 100)
    assert (axis.at(-4.0), axis.at(1e9)) == (0, 100)


AXES = {
    "hundreds": (Axis(0, 1080, 0, 1, is_log=False), [0, 200, 400, 600, 800, 1000]),
    "few": (Axis(0.5, 7.5, 0, 1, is_log=False), [2, 4, 6]),
    "one magnitude": (Axis(50, 1200, 0, 1, is_log=True), [50, 100, 200, 500, 1000]),
    "many magnitudes": (Axis(1, 1_000_000, 0, 1, is_log=True), [1, 100, 10_000, 1_000_000]),
}


@pytest.mark.parametrize(("axis", "ticks"), AXES.values(), ids=AXES)
def test_ticks_are_round_and_few(axis: Axis, ticks: list[float]) -> None:
    assert axis.ticks() == pytest.approx(ticks)
