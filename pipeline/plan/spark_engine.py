"""The engine on Spark: splits are read in parallel, then each client's requests on each broker are replayed.

Both steps are the functions of `local_engine`, in Spark's Python workers. A row between them has up to half a million
packed requests, so that Spark shuffles few rows. Quarantined input and counts are rows of the same data set, so the
input is read once.

Executors need this package, and the input at the same paths.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pyarrow as pa

from sluice.pipeline.charges.charges import Client
from sluice.pipeline.charges.sources import Split, read

from .analysis import Settings, find_need, try_candidates
from .engine import Engine, OnProgress
from .tables import FINDING, NEEDS, QUARANTINE, QUARANTINED, REPLAYS, arrow_schema, row_of, sql_columns, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# For a local session. The JVM has little work, less than optimizing compilation would cost.
SETTINGS = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

# The kinds of rows between the steps: packed requests, a count, a quarantined line.
_CHARGES, _COUNT, _BAD = "charges", "count", "bad"
_KEY = {"what": str, "kind": str, "broker": str, "user": str, "client_id": str, "place": int}
_READ = {**_KEY, "part": int, "name": str, "number": int, **QUARANTINED}
_FOUND = {"what": str, "name": str, "number": int, **QUARANTINED, **FINDING}
_ROWS = "rows"
_TASKS_PER_CORE = 4  # balances load: a task with large clients should not be the only one left
_POLL_S = 0.5


def engine_on(session: "SparkSession") -> Engine:
    return partial(_run, session)


def _run(
    session: "SparkSession", splits: Sequence[Split], settings: Settings, out: Path, on_progress: OnProgress
) -> dict[str, int]:
    from pyspark import StorageLevel
    from pyspark.sql import functions as f

    # Spark reads the annotations to determine the arguments.
    def of_group(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        return _of_group(key, group, settings)

    cores = session.sparkContext.defaultParallelism
    found = (
        session.range(0, len(splits), 1, len(splits))
        .mapInArrow(partial(_read_splits, splits=splits, settings=settings), f"{sql_columns(_READ)}, {_ROWS} binary")
        .repartition(cores * _TASKS_PER_CORE, *_KEY)
        .groupBy(*_KEY)
        .applyInArrow(of_group, sql_columns(_FOUND))
        .persist(StorageLevel.DISK_ONLY)
    )
    with _Progress(session, on_progress):
        needs = {NEEDS: FINDING} if settings.limits else {}
        for table, columns in {REPLAYS: FINDING, QUARANTINE: QUARANTINED, **needs}.items():
            found.where(f.col("what") == table).select(*columns).coalesce(cores).write.parquet(str(out / table))
        counts: Counter[str] = Counter()
        for name, number in found.where(f.col("what") == _COUNT).select("name", "number").collect():  # a few per split
            counts[name] += number
    found.unpersist()
    return dict(counts)


# -- in Spark's workers ------------------------------------------------------------------------------------------------


def _read_splits(
    batches: Iterator[pa.RecordBatch], splits: Sequence[Split], settings: Settings
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for place in batch.column(0).to_pylist():
            for part, found in enumerate(read(splits[place], settings.by)):
                rows: list[tuple[object, ...]] = []
                for client, packed in found.charges.items():
                    rows.append((_CHARGES, *client, 0, place << 32 | part, "", 0, *_NOT_BAD, packed))
                rows += [(_BAD, *_NO_CLIENT, place << 32 | part, 0, "", 0, *bad, b"") for bad in found.quarantined]
                rows += [(_COUNT, *_NO_CLIENT, place, 0, *count, *_NOT_BAD, b"") for count in found.counts.items()]
                yield from _encoded(rows)


_NO_CLIENT = ("", "", "", "")
_NOT_BAD = ("", 0, "", "")


def _encoded(rows: Sequence[tuple[object, ...]]) -> Iterator[pa.RecordBatch]:
    table = table_of([row[:-1] for row in rows], _READ)
    yield from table.append_column(_ROWS, pa.array([row[-1] for row in rows], pa.binary())).to_batches()


def _of_group(key: tuple[pa.Scalar, ...], group: pa.Table, settings: Settings) -> pa.Table:
    """Return a client's findings, or unchanged counts and quarantined lines."""
    what, *client, _ = (part.as_py() for part in key)
    if what == _CHARGES:
        in_order = group.sort_by("part")
        return _of_client(Client(*client), in_order.column(_ROWS).to_pylist(), settings)
    passed_on = group.select(["name", "number", *QUARANTINED])
    what_column = pa.array([QUARANTINE if what == _BAD else what] * len(group), pa.string())
    nothing = [pa.nulls(len(group), type_) for type_ in arrow_schema(FINDING).types]
    return pa.table([what_column, *passed_on.columns, *nothing], schema=arrow_schema(_FOUND))


def _of_client(client: Client, parts: Sequence[bytes], settings: Settings) -> pa.Table:
    rows = [(REPLAYS, *row_of(finding)) for finding in try_candidates(client, parts, settings)]
    need = find_need(client, parts, settings)
    if need is not None:
        rows.append((NEEDS, *row_of(need)))
    return table_of([(row[0], "", 0, *_NOT_BAD, *row[1:]) for row in rows], _FOUND)


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
