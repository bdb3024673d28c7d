"""The engine on Spark: splits are read in parallel, then each client's requests on each broker are replayed.

Both steps are the functions of `local_engine`, in Spark's Python workers. Between them Spark shuffles rows of up to
half a million packed requests. A task of the second step receives whole clients, because grouping in Spark would start
an Arrow stream for each. Quarantined input and counts are rows of the same data set.

Executors need this package, and the input at the same paths.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pyarrow as pa

from sluice.pipeline.charges.charges import Client
from sluice.pipeline.charges.sources import Split, read

from .analysis import Settings, find_need, try_candidates
from .demand import measure_demand
from .engine import Engine, OnProgress
from .tables import (
    DEMAND,
    DEMANDED,
    FINDING,
    NEEDS,
    QUARANTINE,
    QUARANTINED,
    REPLAYS,
    row_of,
    row_of_demand,
    sql_columns,
    table_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A local session has too little work for optimizing compilation.
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
}

_KEY = {"kind": str, "broker": str, "user": str, "client_id": str}
_REST = {"name": str, "number": int, **QUARANTINED}  # a count, or a quarantined line
_READ = {"what": str, **_KEY, "place": int, "part": int, **_REST}
_DEMANDED = {name: type_ for name, type_ in DEMANDED.items() if name not in FINDING}
_FOUND = {"what": str, **_REST, **FINDING, **_DEMANDED}
_ROWS = "rows"
_CHARGES, _COUNT = "charges", "count"
_TASKS_PER_CORE = 8  # balances load: a task with large clients should not be the only one left
_SPLITS_PER_TASK = 2  # at least; bounds the memory of a task
_ROWS_AT_ONCE = 10_000
_POLL_S = 0.5


def engine_on(session: "SparkSession") -> Engine:
    return partial(_run, session)


def _run(
    session: "SparkSession", splits: Sequence[Split], settings: Settings, out: Path, on_progress: OnProgress
) -> dict[str, int]:
    from pyspark import StorageLevel
    from pyspark.sql import functions as f

    cores = session.sparkContext.defaultParallelism
    found = (
        session.range(0, len(splits), 1, len(splits))
        .mapInArrow(partial(_read_splits, splits=splits, settings=settings), f"{sql_columns(_READ)}, {_ROWS} binary")
        .repartition(max(cores * _TASKS_PER_CORE, len(splits) // _SPLITS_PER_TASK), *_KEY, "place")
        .mapInArrow(partial(_replay_clients, settings=settings), sql_columns(_FOUND))
        .persist(StorageLevel.DISK_ONLY)
    )
    with _Progress(session, on_progress):
        tables = {REPLAYS: FINDING, QUARANTINE: QUARANTINED, DEMAND: DEMANDED}
        if settings.limits:
            tables[NEEDS] = FINDING
        for table, columns in tables.items():
            found.where(f.col("what") == table).select(*columns).coalesce(cores).write.parquet(str(out / table))
        counts: Counter[str] = Counter()
        for name, number in found.where(f.col("what") == _COUNT).select("name", "number").collect():  # a few per split
            counts[name] += number
    found.unpersist()
    return dict(counts)


# -- in Spark's workers ------------------------------------------------------------------------------------------------

_NO_CLIENT = ("",) * len(_KEY)
_NOT_BAD = ("", 0, "", "")
_NO_REST = ("", 0, *_NOT_BAD)
_NO_DEMAND = (None,) * len(_DEMANDED)
_NO_FINDING = (None,) * (len(FINDING) + len(_DEMANDED))


def _read_splits(
    batches: Iterator[pa.RecordBatch], splits: Sequence[Split], settings: Settings
) -> Iterator[pa.RecordBatch]:
    """Yield packed requests, at place 0 so that one task receives all of a client, and other rows."""
    for batch in batches:
        for place in batch.column(0).to_pylist():
            for number, found in enumerate(read(splits[place], settings.by)):
                part = place << 32 | number
                rows: list[tuple[object, ...]] = [
                    (_CHARGES, *client, 0, part, *_NO_REST, packed) for client, packed in found.charges.items()
                ]
                rows += [(QUARANTINE, *_NO_CLIENT, part, part, "", 0, *bad, b"") for bad in found.quarantined]
                rows += [(_COUNT, *_NO_CLIENT, part, part, *count, *_NOT_BAD, b"") for count in found.counts.items()]
                table = table_of([row[:-1] for row in rows], _READ)
                packed_rows = pa.array([row[-1] for row in rows], pa.binary())
                yield from table.append_column(_ROWS, packed_rows).to_batches()


def _replay_clients(batches: Iterator[pa.RecordBatch], settings: Settings) -> Iterator[pa.RecordBatch]:
    parts: defaultdict[Client, list[tuple[int, bytes]]] = defaultdict(list)
    for batch in batches:
        names = ("what", *_KEY, "part", _ROWS)
        others = []
        for row, (what, *client, part, packed) in enumerate(zip(*map(batch.column, names), strict=True)):
            if what.as_py() == _CHARGES:
                parts[Client(*(each.as_py() for each in client))].append((part.as_py(), packed.as_py()))
            else:
                others.append((what.as_py(), *(batch.column(name)[row].as_py() for name in _REST), *_NO_FINDING))
        yield from table_of(others, _FOUND).to_batches()
    rows = _rows_of(parts, settings)
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        yield from table_of(some, _FOUND).to_batches()


def _rows_of(parts: dict[Client, list[tuple[int, bytes]]], settings: Settings) -> Iterator[tuple[object, ...]]:
    for client in sorted(parts):
        packed = [rows for _, rows in sorted(parts.pop(client), key=itemgetter(0))]
        for finding in try_candidates(client, packed, settings):
            yield (REPLAYS, *_NO_REST, *row_of(finding), *_NO_DEMAND)
        need = find_need(client, packed, settings)
        if need is not None:
            yield (NEEDS, *_NO_REST, *row_of(need), *_NO_DEMAND)
        demand = measure_demand(client, packed, settings.loops[0])
        if demand is not None:
            values = dict(zip(DEMANDED, row_of_demand(demand), strict=True))
            yield (DEMAND, *_NO_REST, *map(values.get, (*FINDING, *_DEMANDED)))


# -- progress ----------------------------------------------------------------------------------------------------------


class _Progress:
    def __init__(self, session: "SparkSession", on_progress: OnProgress) -> None:
        self._tracker = session.sparkContext.statusTracker()
        self._on_progress = on_progress
        self._is_over = Event()
        self._thread = Thread(target=self._poll, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._is_over.wait(_POLL_S):
            for stage in self._tracker.getActiveStageIds():
                info = self._tracker.getStageInfo(stage)
                if info is not None:
                    self._on_progress(f"stage {stage}", info.numCompletedTasks, info.numTasks)
