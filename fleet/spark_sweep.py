"""A sweep on Spark: one task for each cell and seed.

Executors need this package with the extra `fleet`.
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


def sweep_on(session: "SparkSession", cells: Sequence[Cell]) -> list[Row]:
    """Run all cells as tasks of a Spark session, and return their rows in order of the cells."""
    tasks = session.range(0, len(cells), 1, len(cells)).mapInArrow(partial(_run, cells=cells), _COLUMNS)
    found = sorted((task["id"], bytes(task["row"])) for task in tasks.collect())
    return [msgspec.json.decode(row, type=Row) for _, row in found]


def _run(batches: Iterator[pa.RecordBatch], cells: Sequence[Cell]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        ids = batch.column(0).to_pylist()
        rows = [msgspec.json.encode(run_cell(cells[number])) for number in ids]
        yield pa.RecordBatch.from_pydict({"id": ids, "row": rows})
