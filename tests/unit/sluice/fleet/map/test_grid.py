"""Tests of the axes of a map, and of the cells that are simulated."""

import numpy as np
import pytest

from sluice.errors import ConfigError
from sluice.fleet.map import grid
from sluice.fleet.models.mix import parse_mix
from sluice.fleet.simulation.broker import BROKERS

_REGIONS = np.array([[0, 0, 0, 0, 1, 2], [0, 0, 0, 1, 2, 2], [0, 0, 1, 2, 2, 2]])


def _base(mix: str = "java:1000", *settings: str, load: float = 0.5) -> grid.Base:
    groups = parse_mix(mix, settings)
    return grid.Base(groups, BROKERS["kafka"].scaled_to(sum(group.clients for group in groups) / load), 20)


WRONG_AXES = {
    "unknown setting": ("timeout=1:2", "--x timeout: unknown setting; expected one of load, outage"),
    "no range": ("load", "--x load: expected load=FROM:TO, got load"),
    "one end": ("load=0.1", "--x load: expected load=FROM:TO, got load=0.1"),
    "no numbers": ("load=a:b", "--x load: expected load=FROM:TO, got load=a:b"),
    "inverted range": ("load=0.9:0.1", "--x load: expected FROM less than TO, got 0.9:0.1"),
    "empty range": ("load=0.5:0.5", "--x load: expected FROM less than TO, got 0.5:0.5"),
    "value of zero": ("load=0:1", "--x load: expected values from 0.001 to 2, got 0:1"),
    "not a number": ("load=0.1:nan", "--x load: expected values from 0.001 to 2, got 0.1:nan"),
    "value too large": ("outage=1:900", "--x outage: expected values from 1 to 600, got 1:900"),
}


@pytest.mark.parametrize(("text", "problem"), WRONG_AXES.values(), ids=WRONG_AXES)
def test_wrong_axis_is_one_line(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        grid.axis("--x", text)
    assert str(error.value).startswith(problem)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("base", "x", "y", "problem"),
    [
        pytest.param(
            _base(), "load=0.1:0.9", "load=0.2:0.8", "--y load: expected another setting than --x load, got load",
            id="one setting twice",
        ),
        pytest.param(
            _base(), "load=0.6:0.9", "outage=1:60",
            "--x load: the fleet is outside the map; expected a range around its 0.5, got 0.6:0.9",
            id="fleet outside the map",
        ),
        pytest.param(
            _base("java-consumer:10"), "outage=1:60", "request.timeout.ms=1000:60000",
            "--fleet java-consumer: expected models of producers, got a consumer", id="consumers",
        ),
    ],
)  # fmt: skip
def test_wrong_map_is_one_line(base: grid.Base, x: str, y: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        grid.draw_map("fleet", base, grid.axis("--x", x), grid.axis("--y", y), simulated=0)
    assert str(error.value) == problem


def test_axis_is_logarithmic_for_large_ratios() -> None:
    linear, logarithmic = grid.axis("--x", "load=0.05:0.95"), grid.axis("--x", "request.timeout.ms=1000:60000")
    assert (linear.is_logarithmic, logarithmic.is_logarithmic) == (False, True)
    assert np.diff(linear.values) == pytest.approx(0.9 / 39, rel=0.05)
    assert np.diff(np.log(logarithmic.values)) == pytest.approx(np.log(60) / 39, rel=0.05)


def test_values_of_whole_settings_are_whole() -> None:
    assert grid.axis_of("max.in.flight.requests.per.connection", 1, 5).values == [1, 2, 3, 4, 5]


def test_default_axis_has_the_load_of_the_fleet() -> None:
    assert grid.default_x(_base(load=0.01)).values[0] == 0.01
    assert grid.default_x(_base(load=0.5)) == grid.axis_of("load", 0.05, 0.95)


@pytest.mark.parametrize("setting", ["load", "outage", "backlog", "request.timeout.ms", "requests.per.s"])
def test_cell_with_the_values_of_the_fleet_is_the_fleet(setting: str) -> None:
    base = _base()
    value = base.value(setting)
    assert value is not None
    found = base.cell({setting: value})
    assert (found.groups, found.outage_s) == (base.groups, 20)
    assert found.broker.produce_us == pytest.approx(base.broker.produce_us)


def test_rate_of_requests_changes_the_load() -> None:
    found = _base(load=0.4).cell({"requests.per.s": 2})
    assert grid.Base(found.groups, found.broker, 20).load() == pytest.approx(0.8)


def test_models_with_different_values_have_no_point() -> None:
    found = grid.draw_map(
        "mixed",
        _base("java:10,aiokafka:10"),
        grid.Axis("load", [0.4, 0.6]),
        grid.Axis("request.timeout.ms", [2e3, 3e4]),
        simulated=0,
    )
    assert (found.point, found.region) == (None, None)


@pytest.mark.parametrize(("recovery_s", "expected"), [(0, "recovers"), (10, "recovers"), (11, "late"), (-1, "never")])
def test_regions_by_time(recovery_s: int, expected: str) -> None:
    assert grid.region_of(recovery_s) == expected


def test_simulation_may_differ_by_one_cell() -> None:
    assert grid.agrees(_REGIONS, 0, 3, "late")
    assert grid.agrees(_REGIONS, 0, 3, "recovers")
    assert not grid.agrees(_REGIONS, 0, 0, "late")
    assert not grid.agrees(_REGIONS, 2, 5, "recovers")


def test_half_of_the_sample_is_near_a_border() -> None:
    regions = np.zeros((40, 40), dtype=np.int64)
    regions[:, 30:] = grid.REGIONS.index("never")
    chosen = grid.sample(regions, 20, 0)
    near = [column for _, column in chosen[::2]]
    assert all(27 <= column <= 33 for column in near)
    assert any(not 27 <= column <= 33 for _, column in chosen[1::2])
    assert grid.sample(regions, 20, 0) == chosen
    assert len(grid.sample(np.zeros((2, 2), dtype=np.int64), 9, 0)) == 4


def test_nearest_value() -> None:
    assert grid.nearest([1, 2, 4], 2.9) == 1
