"""A sweep on Spark: 16 tasks for each core, or one for each cell and seed if those are fewer.

A task costs Spark up to 65 ms, as measured: as much as the simulation of a small cell. Executors need this package with
the extra `fleet`.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from .sweep import Cell, Row, run_cell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = "id long, row binary"
_TASKS_PER_CORE = 16  # so that the cores end at about the same time


def sweep_on(session: "SparkSession", cells: Sequence[Cell]) -> list[Row]:
    """Run all cells as tasks of a Spark session, and return their rows in order of the cells."""
    count = min(len(cells), _TASKS_PER_CORE * session.sparkContext.defaultParallelism)
    tasks = session.range(0, count, 1, count).mapInArrow(partial(_run, cells=cells, tasks=count), _COLUMNS)
    found = sorted((task["id"], bytes(task["row"])) for task in tasks.collect())
    return [msgspec.json.decode(row, type=Row) for _, row in found]


def _run(batches: Iterator[pa.RecordBatch], cells: Sequence[Cell], tasks: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        # Each task runs every `tasks`-th cell, because neighbours take a similar time.
        ids = [number for task in batch.column(0).to_pylist() for number in range(task, len(cells), tasks)]
        rows = [msgspec.json.encode(run_cell(cells[number])) for number in ids]
        yield pa.RecordBatch.from_pydict({"id": ids, "row": rows})
