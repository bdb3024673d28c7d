"""The map of no return: a grid of two settings, and what becomes of a fleet in each cell after an outage of its broker.

- recovers: within `LATE_S` of the end of the outage, operations complete as before (results.figures_of_counts).
- recovers late: later, within `OBSERVED_S`.
- never: not within `OBSERVED_S`. If requests need more than the capacity, nearly all of it for those that have timed
  out, this is a stable fixed point: the queue grows, and retries keep it full.

The fluid model decides each cell. The simulation runs a sample of cells: it agrees if its region is that of the cell,
or of one next to it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import fields, replace

from sluice.errors import ConfigError
from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.results import figures_of_counts
from sluice.fleet.run import ensure_possible, map_jobs, workers_for
from sluice.fleet.simulation.arrays import US_PER_MS
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.engine import simulate
from sluice.fleet.sweep import OBSERVED_S, outage_schedule, produce_equivalents
from sluice.text.error_text import expected, unknown

from .fluid import Cell, recover

Region = Literal["recovers", "late", "never"]
REGIONS: tuple[Region, ...] = ("recovers", "late", "never")
LATE_S = 10
CELLS = 40  # along each axis
_LOGARITHMIC = 20  # from this ratio of the ends of an axis on
# Clients of a simulated cell. The broker's capacity and backlog are in proportion, so that the queues are as long.
_MOST_SIMULATED = 1000
_FIELDS = {field.encode_name: field for field in fields(ClientModel)}
LOAD, OUTAGE, BACKLOG = "load", "outage", "backlog"
# The settings that decide in the fluid model, with the values that they may have.
SETTINGS: dict[str, tuple[float, float]] = {
    LOAD: (0.001, 2),
    OUTAGE: (1, 600),
    BACKLOG: (1, 65_535),
    "request.timeout.ms": (100, 600_000),
    "reconnect.backoff.ms": (1, 60_000),
    "reconnect.backoff.max.ms": (1, 60_000),
    "requests.per.s": (0.01, 100),
    "max.in.flight.requests.per.connection": (1, 64),
}
_WHOLE = (BACKLOG, "max.in.flight.requests.per.connection")


class Axis(Struct, frozen=True):
    setting: str
    values: list[float]

    @property
    def is_logarithmic(self) -> bool:
        return self.values[-1] / self.values[0] >= _LOGARITHMIC


class Base(NamedTuple):
    """What is the same in all cells, unless an axis changes it."""

    groups: Sequence[Group]
    broker: BrokerModel
    outage_s: float

    def load(self) -> float:
        per_s = sum(group.clients * produce_equivalents(group.model, self.broker) for group in self.groups)
        return per_s * self.broker.produce_us / 1e6

    def value(self, setting: str) -> float | None:
        """Return the value of a setting; None if the models have different ones."""
        if setting in (LOAD, OUTAGE, BACKLOG):
            return {LOAD: self.load(), OUTAGE: self.outage_s, BACKLOG: float(self.broker.backlog)}[setting]
        found = {float(getattr(group.model, _FIELDS[setting].name)) for group in self.groups}
        return found.pop() if len(found) == 1 else None

    def cell(self, settings: dict[str, float]) -> Cell:
        known = {_FIELDS[name].name: _typed(name, value) for name, value in settings.items() if name in _FIELDS}
        groups = [group._replace(model=replace(group.model, **known)) for group in self.groups]
        changed = Base(groups, self.broker, settings.get(OUTAGE, self.outage_s))
        capacity = 1e6 / self.broker.produce_us * changed.load() / settings.get(LOAD, self.load())
        if LOAD not in settings:
            capacity = 1e6 / self.broker.produce_us
        backlog = round(settings.get(BACKLOG, self.broker.backlog))
        return Cell(groups, replace(self.broker.scaled_to(capacity), backlog=backlog), changed.outage_s)


class Checked(Struct, frozen=True):
    """A cell that was simulated."""

    x: float
    y: float
    region: Region
    simulated: Region
    agrees: bool


class Map(Struct, frozen=True, kw_only=True):
    """The regions by y and x, and where the fleet is.

    Args:
        point: The fleet's own values of both settings; None if its models have different ones.
        region: The region of the point.
        load, in_vain: Of the point, as in fluid.Outcome.
        checked: Simulated cells.
        connection_cost: CPU time of a connection over that of a Produce request.
    """

    fleet: str
    x: Axis
    y: Axis
    regions: list[list[Region]]
    point: tuple[float, float] | None
    region: Region | None
    recovery_s: int | None
    load: float
    in_vain: float
    checked: list[Checked]
    connection_cost: float
    late_s: int = LATE_S
    observed_s: int = OBSERVED_S


def axis(option: str, text: str) -> Axis:
    """Return the axis of NAME=FROM:TO. Raises ConfigError."""
    setting, _, ends = text.partition("=")
    if setting not in SETTINGS:
        raise ConfigError(f"{option} {setting}: {unknown('setting', setting, list(SETTINGS))}")
    least, most = SETTINGS[setting]
    try:
        low, high = map(float, ends.split(":"))
    except ValueError:
        raise ConfigError(f"{option} {setting}: {expected(f'{setting}=FROM:TO', text)}") from None
    if not (least <= low <= most and least <= high <= most):
        raise ConfigError(f"{option} {setting}: {expected(f'values from {least:g} to {most:,g}', ends)}")
    if not low < high:
        raise ConfigError(f"{option} {setting}: {expected('FROM less than TO', ends)}")
    return axis_of(setting, low, high)


def axis_of(setting: str, low: float, high: float) -> Axis:
    spread = np.geomspace if high / low >= _LOGARITHMIC else np.linspace
    values = [float(f"{value:.4g}") for value in spread(low, high, CELLS)]
    if setting in _WHOLE:
        values = list(dict.fromkeys(float(round(value)) for value in values))
    return Axis(setting, values)


def default_x(base: Base) -> Axis:
    """Return an axis of the load that has the fleet's own."""
    load = base.load()
    return axis_of(LOAD, min(0.05, load), max(0.95, load))


def _check(base: Base, x: Axis, y: Axis) -> None:
    """Raise ConfigError for equal settings, and for a point outside the map."""
    if x.setting == y.setting:
        raise ConfigError(f"--y {y.setting}: {expected(f'another setting than --x {x.setting}', y.setting)}")
    for option, each in (("--x", x), ("--y", y)):
        value = base.value(each.setting)
        if value is not None and not each.values[0] <= value <= each.values[-1]:
            ends = f"{each.values[0]:g}:{each.values[-1]:g}"
            raise ConfigError(
                f"{option} {each.setting}: the fleet is outside the map; expected a range around its {value:.4g},"
                f" got {ends}"
            )
    for group in base.groups:
        if group.model.role != "producer":
            raise ConfigError(f"--fleet {group.name}: expected models of producers, got a consumer")


def draw_map(
    fleet: str,
    base: Base,
    x: Axis,
    y: Axis,
    *,
    simulated: int,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Map:
    """Return the map of a fleet, with a sample of cells simulated. Raises ConfigError."""
    _check(base, x, y)
    settings = [{x.setting: at_x, y.setting: at_y} for at_y in y.values for at_x in x.values]
    own = base.value(x.setting), base.value(y.setting)
    cells = [base.cell(each) for each in settings]
    outcome = recover([*cells, base.cell({})], OBSERVED_S)
    found = [region_of(int(recovery_s)) for recovery_s in outcome.recovery_s]
    regions = np.array([REGIONS.index(region) for region in found[:-1]]).reshape(len(y.values), len(x.values))
    chosen = sample(regions, simulated, seed)
    jobs = [(cells[row * len(x.values) + column], seed) for row, column in chosen]
    runs = map_jobs(_simulate, jobs, workers_for(len(jobs)), progress) if jobs else []
    checked = [
        Checked(
            x.values[column], y.values[row], REGIONS[regions[row, column]], region, agrees(regions, row, column, region)
        )
        for (row, column), region in zip(chosen, runs, strict=True)
        if region is not None
    ]
    recovery_s = int(outcome.recovery_s[-1])
    point = None if own[0] is None or own[1] is None else (own[0], own[1])
    return Map(
        fleet=fleet,
        x=x,
        y=y,
        regions=[[REGIONS[region] for region in row] for row in regions],
        point=point,
        region=None if point is None else found[-1],
        recovery_s=None if recovery_s < 0 else recovery_s,
        load=float(outcome.load[-1]),
        in_vain=float(outcome.in_vain[-1]),
        checked=checked,
        connection_cost=base.broker.connection_us / base.broker.produce_us,
    )


def nearest(values: Sequence[float], value: float) -> int:
    """Return the index of the value of an axis that is nearest."""
    return min(range(len(values)), key=lambda index: abs(values[index] - value))


def region_of(recovery_s: int) -> Region:
    return "never" if recovery_s < 0 else "late" if recovery_s > LATE_S else "recovers"


def agrees(regions: npt.NDArray[np.int64], row: int, column: int, simulated: Region) -> bool:
    """Return whether a cell, or one next to it, has the region of the simulation."""
    near = regions[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
    return bool((near == REGIONS.index(simulated)).any())


def sample(regions: npt.NDArray[np.int64], count: int, seed: int) -> list[tuple[int, int]]:
    """Return cells: every second one at most three cells from a border, the others anywhere."""
    random = np.random.default_rng(seed)
    everywhere = np.argwhere(np.ones_like(regions, dtype=np.bool_))
    borders = np.argwhere(_is_border(regions))
    found: list[tuple[int, int]] = []
    for number in range(min(count, len(everywhere))):
        if number % 2 == 0 and len(borders):
            row, column = borders[random.integers(len(borders))] + random.integers(-3, 4, 2)
        else:
            row, column = everywhere[random.integers(len(everywhere))]
        last_row, last_column = regions.shape[0] - 1, regions.shape[1] - 1
        found.append((int(np.clip(row, 0, last_row)), int(np.clip(column, 0, last_column))))
    return found


def _is_border(regions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    found = np.zeros_like(regions, dtype=np.bool_)
    found[1:] |= regions[1:] != regions[:-1]
    found[:, 1:] |= regions[:, 1:] != regions[:, :-1]
    return found


def _simulate(job: tuple[Cell, int]) -> Region:
    cell, seed = job
    return simulated_region(cell, seed)


def simulated_region(cell: Cell, seed: int) -> Region:
    cell = _smaller(cell)
    schedule = outage_schedule(1, cell.outage_s)
    ensure_possible(cell.groups, schedule, 1)
    run = simulate(cell.groups, schedule, cell.broker, seed=seed)
    figures = figures_of_counts(run.counts, schedule.trigger_us // US_PER_MS, schedule.healed_us // US_PER_MS)
    return region_of(-1 if figures.recovery_s is None else figures.recovery_s)


def _smaller(cell: Cell) -> Cell:
    clients = sum(group.clients for group in cell.groups)
    if clients <= _MOST_SIMULATED:
        return cell
    factor = _MOST_SIMULATED / clients
    groups = [group._replace(clients=max(round(group.clients * factor), 1)) for group in cell.groups]
    broker = cell.broker.scaled_to(1e6 / cell.broker.produce_us * factor)
    return Cell(groups, replace(broker, backlog=math.ceil(cell.broker.backlog * factor)), cell.outage_s)


def _typed(name: str, value: float) -> float | int:
    return round(value) if name in _WHOLE else value
