"""A grid of outages, loads and fleets: which combinations recover, and how fast.

In each cell, the first of several brokers is killed for the outage, after 20 s. The run continues for 120 s afterwards;
a cell without recovery in that time is marked.
"""

import os
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from sluice.broker.scenarios.files import scenario_of
from sluice.errors import ConfigError

from .arrays import US_PER_MS
from .broker import BrokerModel
from .engine import Group
from .results import figures_of_counts
from .run import Job, ensure_memory, run_jobs
from .schedule import Schedule, schedule_of

_KILLED_AT_S, _OBSERVED_S = 20, 120
# With --seeds 3 this is a day of one core for the largest fleets.
_MOST_CELLS = 10_000


class Axes(NamedTuple):
    """The grid.

    Args:
        fleets: Fleets by name.
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


def sweep(
    axes: Axes,
    broker: BrokerModel,
    *,
    brokers: int = 3,
    seeds: Sequence[int] = (0,),
    progress: Callable[[int, int], None] | None = None,
) -> list[Row]:
    """Run all cells and seeds; results do not depend on the number of cores.

    Raises:
        ConfigError: Too many cells, or a load outside 0 to 2.
        SluiceError: The memory does not suffice.
    """
    cells = list(product(axes.fleets, axes.outages_s, axes.loads, seeds))
    if len(cells) > _MOST_CELLS:
        raise ConfigError(f"sweep: expected at most {_MOST_CELLS:,} cells and seeds, got {len(cells):,}")
    workers = min(len(cells), os.cpu_count() or 1)
    ensure_memory(max(_clients(groups) for groups in axes.fleets.values()), brokers, workers)
    schedules = {outage_s: _schedule(brokers, outage_s) for outage_s in axes.outages_s}
    jobs: list[Job] = [
        (
            tuple(axes.fleets[fleet]),
            schedules[outage_s],
            _loaded(broker, axes.fleets[fleet], brokers, load),
            seed,
            False,
        )
        for fleet, outage_s, load, seed in cells
    ]
    found = run_jobs(jobs, workers, progress)
    return [_row(*cell, schedules[cell[1]], simulation.counts) for cell, simulation in zip(cells, found, strict=True)]


def write_rows(rows: Sequence[Row], folder: Path) -> None:
    """Write `sweep.json` and `sweep.parquet`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sweep.json").write_bytes(msgspec.json.encode(rows))
    pq.write_table(pa.Table.from_pylist(msgspec.to_builtins(rows)), folder / "sweep.parquet")


def _schedule(brokers: int, outage_s: float) -> Schedule:
    return schedule_of(
        scenario_of(
            {
                "name": "sweep",
                "brokers": brokers,
                "duration": f"{_KILLED_AT_S + outage_s + _OBSERVED_S}s",
                "steps": [{"at": f"{_KILLED_AT_S}s", "kill": 1, "during": f"{outage_s}s"}],
            }
        )
    )


def _loaded(broker: BrokerModel, groups: Sequence[Group], brokers: int, load: float) -> BrokerModel:
    if not 0 < load <= 2:
        raise ConfigError(f"--loads: expected shares of the capacity above 0, up to 2, got {load:g}")
    per_s = sum(group.clients * group.model.requests_per_s for group in groups)
    return broker.scaled_to(per_s / brokers / load)


def _clients(groups: Sequence[Group]) -> int:
    return sum(group.clients for group in groups)


def _row(
    fleet: str,
    outage_s: float,
    load: float,
    seed: int,
    schedule: Schedule,
    counts: "np.ndarray[tuple[int, int], np.dtype[np.int64]]",
) -> Row:
    found = figures_of_counts(counts, schedule.trigger_us // US_PER_MS, schedule.healed_us // US_PER_MS)
    recovery_s = -1 if found.recovery_s is None else found.recovery_s
    return Row(
        fleet, outage_s, load, seed, found.peak_per_s, found.amplification, found.disturbed_s, recovery_s, found.expired
    )
