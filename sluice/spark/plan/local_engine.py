"""The engine in this process, without Spark and Java, for input that fits in memory at 28 bytes per request."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sluice.spark.charges.charges import Client
from sluice.spark.charges.sources import read
from sluice.spark.splits import Split

from . import tables
from .analysis import OnProgress, Settings, find_need, try_candidates
from .demand import measure_demand


def run(splits: Sequence[Split], settings: Settings, out: Path, on_progress: OnProgress) -> dict[str, int]:
    counts: Counter[str] = Counter()
    parts: dict[Client, list[bytes]] = {}
    quarantine = tables.Writer(out, tables.QUARANTINE, tables.QUARANTINED)
    for number, split in enumerate(splits):
        on_progress("reading", number, len(splits))
        for found in read(split, settings.by):
            counts.update(found.counts)
            for client, rows in found.charges.items():
                parts.setdefault(client, []).append(rows)
            for row in found.quarantined:
                quarantine.add(row)
    quarantine.close()
    replay_clients(parts, settings, out, on_progress)
    return dict(counts)


def replay_clients(
    parts: dict[Client, list[bytes]], settings: Settings, out: Path, on_progress: OnProgress, part: int = 0
) -> None:
    """Write the tables of these clients, as the given part of each."""
    replays = tables.Writer(out, tables.REPLAYS, tables.FINDING, part)
    needs = tables.Writer(out, tables.NEEDS, tables.FINDING, part)
    demand = tables.Writer(out, tables.DEMAND, tables.DEMANDED, part)
    for number, client in enumerate(sorted(parts)):
        on_progress("replaying", number, len(parts))
        for finding in try_candidates(client, parts[client], settings):
            replays.add(tables.row_of(finding))
        need = find_need(client, parts[client], settings)
        if need is not None:
            needs.add(tables.row_of(need))
        demanded = measure_demand(client, parts[client])
        if demanded is not None:
            demand.add(tables.row_of_demand(demanded))
    for table in (replays, needs, demand):
        table.close()
