"""A grid of outages, loads and fleets: which combinations recover, and how fast.

In each cell, the first of several brokers is killed after 20 s, for the outage. The run continues for 120 s afterwards.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from sluice.broker.scenarios.files import scenario_of
from sluice.errors import ConfigError
from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.simulation.arrays import US_PER_MS
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.engine import simulate
from sluice.fleet.simulation.schedule import Schedule, schedule_of

from .results import figures_of_counts
from .run import ensure_possible, map_jobs, workers_for

_KILLED_AT_S, OBSERVED_S = 20, 120
# With --seeds 3 this is a day of one core for the largest fleets.
_MOST_CELLS = 10_000
_LARGEST_LOAD = 2


class Axes(NamedTuple):
    """The grid.

    Args:
        outages_s: Times for which the first broker is down.
        loads: Shares of the brokers' capacity that the fleet uses before the failure.
    """

    fleets: dict[str, list[Group]]
    outages_s: Sequence[float]
    loads: Sequence[float]


class Row(Struct, frozen=True):
    """The figures of one cell and seed; `recovery_s` is -1 without recovery."""

    fleet: str
    outage_s: float
    load: float
    seed: int
    peak_per_s: float
    amplification: float
    disturbed_s: int
    recovery_s: int
    expired: int


class Cell(NamedTuple):
    fleet: str
    groups: tuple[Group, ...]
    broker: BrokerModel
    brokers: int
    outage_s: float
    load: float
    seed: int


def cells_of(axes: Axes, broker: BrokerModel, *, brokers: int = 3, seeds: Sequence[int] = (0,)) -> list[Cell]:
    """Return the cells of a grid, with each seed. Raises ConfigError for too many, or a load outside 0 to 2."""
    count = len(axes.fleets) * len(axes.outages_s) * len(axes.loads) * len(seeds)
    if count > _MOST_CELLS:
        raise ConfigError(f"sweep: expected at most {_MOST_CELLS:,} cells and seeds, got {count:,}")
    for load in axes.loads:
        if not 0 < load <= _LARGEST_LOAD:
            raise ConfigError(f"--loads: expected shares of the capacity above 0, up to {_LARGEST_LOAD}, got {load:g}")
    return [
        Cell(fleet, tuple(groups), broker, brokers, outage_s, load, seed)
        for (fleet, groups), outage_s, load, seed in product(axes.fleets.items(), axes.outages_s, axes.loads, seeds)
    ]


def sweep(cells: Sequence[Cell], progress: Callable[[int, int], None] | None = None) -> list[Row]:
    """Run all cells in processes of this machine; after Ctrl-C, return the finished rows. Raises SluiceError."""
    workers = workers_for(len(cells))
    largest = max(cells, key=lambda cell: sum(group.clients for group in cell.groups))
    ensure_possible(largest.groups, outage_schedule(largest.brokers, largest.outage_s), workers)
    return [row for row in map_jobs(run_cell, cells, workers, progress) if row is not None]


def run_cell(cell: Cell) -> Row:
    schedule = outage_schedule(cell.brokers, cell.outage_s)
    per_s = sum(group.clients * produce_equivalents(group.model, cell.broker) for group in cell.groups)
    broker = cell.broker.scaled_to(per_s / cell.brokers / cell.load)
    run = simulate(cell.groups, schedule, broker, seed=cell.seed)
    found = figures_of_counts(run.counts, schedule.trigger_us // US_PER_MS, schedule.healed_us // US_PER_MS)
    recovery_s = -1 if found.recovery_s is None else found.recovery_s
    return Row(
        cell.fleet, cell.outage_s, cell.load, cell.seed, found.peak_per_s, found.amplification, found.disturbed_s,
        recovery_s, found.expired,
    )  # fmt: skip


def produce_equivalents(model: ClientModel, broker: BrokerModel) -> float:
    """Return the Produce requests per second that take as much CPU as a healthy client's requests."""
    if model.role == "producer":
        return model.requests_per_s
    records = math.ceil(model.fetch_min_bytes / model.record_bytes)
    fetches_per_s = max(model.requests_per_s / records, 1000 / model.fetch_max_wait_ms)
    heartbeats_per_s = 1000 / model.heartbeat_interval_ms if model.group_member else 0
    return (fetches_per_s * broker.fetch_us + heartbeats_per_s * broker.metadata_us) / broker.produce_us


def write_rows(rows: Sequence[Row], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sweep.json").write_bytes(msgspec.json.encode(rows))
    pq.write_table(pa.Table.from_pylist(msgspec.to_builtins(rows)), folder / "sweep.parquet")


def outage_schedule(brokers: int, outage_s: float) -> Schedule:
    return schedule_of(
        scenario_of(
            {
                "name": "sweep",
                "brokers": brokers,
                "duration": f"{_KILLED_AT_S + outage_s + OBSERVED_S}s",
                "steps": [{"at": f"{_KILLED_AT_S}s", "kill": 1, "during": f"{outage_s}s"}],
            }
        )
    )
