"""A plan on Spark: splits are read apart, the requests of each client on each broker come together and are replayed.

Both steps are the plain functions that `local_engine` calls, in Spark's Python workers. Between them a client's
requests travel packed, half a million of them in a row at most: Spark moves and sorts few rows, whatever their number,
and none is ever an object of the JVM. What else was found (what could not be read, how much was read) goes the same
way, so that the input is read once.

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

from .analysis import Settings, needed, tried
from .engine import Engine, OnProgress
from .tables import FINDING, NEEDS, QUARANTINE, QUARANTINED, REPLAYS, arrow_schema, row_of, sql_columns, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# For a session of one's own on this machine. The JVM has little to do: to compile it well takes longer than that.
SETTINGS = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

# What a row on its way is: `rows` packed, or one of what is only passed on.
_CHARGES, _COUNT, _BAD = "charges", "count", "bad"
_KEY = {"what": str, "kind": str, "broker": str, "user": str, "client_id": str, "place": int}
_READ = {**_KEY, "part": int, "name": str, "number": int, **QUARANTINED}
_FOUND = {"what": str, "name": str, "number": int, **QUARANTINED, **FINDING}
_ROWS = "rows"
_TASKS_PER_CORE = 4  # so that one that has the large clients is not all that is left in the end
_POLL_S = 0.5


def engine_on(session: "SparkSession") -> Engine:
    """Return the engine on this session."""
    return partial(_run, session)


def _run(
    session: "SparkSession", splits: Sequence[Split], settings: Settings, out: Path, on_progress: OnProgress
) -> dict[str, int]:
    """Writes the tables into `out`; returns how much was read, by what it was."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as f

    def of_group(
        key: tuple[pa.Scalar, ...], group: pa.Table
    ) -> pa.Table:  # by its annotations Spark knows what it takes
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
        for name, number in found.where(f.col("what") == _COUNT).select("name", "number").collect():  # a few of a split
            counts[name] += number
    found.unpersist()
    return dict(counts)


# -- in Spark's workers ------------------------------------------------------------------------------------------------


def _read_splits(
    batches: Iterator[pa.RecordBatch], splits: Sequence[Split], settings: Settings
) -> Iterator[pa.RecordBatch]:
    """What stands in the splits whose numbers come."""
    for batch in batches:
        for place in batch.column(0).to_pylist():
            for part, found in enumerate(read(splits[place], settings.by)):
                rows: list[tuple[object, ...]] = []
                for client, packed in found.charges.items():
                    rows.append((_CHARGES, *client, 0, place << 32 | part, "", 0, *_NOT_BAD, packed))
                rows += [(_BAD, *_NOBODY, place << 32 | part, 0, "", 0, *bad, b"") for bad in found.quarantined]
                rows += [(_COUNT, *_NOBODY, place, 0, *count, *_NOT_BAD, b"") for count in found.counts.items()]
                yield from _on_the_way(rows)


_NOBODY = ("", "", "", "")
_NOT_BAD = ("", 0, "", "")


def _on_the_way(rows: Sequence[tuple[object, ...]]) -> Iterator[pa.RecordBatch]:
    table = table_of([row[:-1] for row in rows], _READ)
    yield from table.append_column(_ROWS, pa.array([row[-1] for row in rows], pa.binary())).to_batches()


def _of_group(key: tuple[pa.Scalar, ...], group: pa.Table, settings: Settings) -> pa.Table:
    """What comes of all rows of one key."""
    what, *client, _ = (part.as_py() for part in key)
    if what == _CHARGES:
        in_order = group.sort_by("part")
        return _of_client(Client(*client), in_order.column(_ROWS).to_pylist(), settings)
    passed_on = group.select(["name", "number", *QUARANTINED])
    what_column = pa.array([QUARANTINE if what == _BAD else what] * len(group), pa.string())
    nothing = [pa.nulls(len(group), type_) for type_ in arrow_schema(FINDING).types]
    return pa.table([what_column, *passed_on.columns, *nothing], schema=arrow_schema(_FOUND))


def _of_client(client: Client, parts: Sequence[bytes], settings: Settings) -> pa.Table:
    rows = [(REPLAYS, *row_of(finding)) for finding in tried(client, parts, settings)]
    need = needed(client, parts, settings)
    if need is not None:
        rows.append((NEEDS, *row_of(need)))
    return table_of([(row[0], "", 0, *_NOT_BAD, *row[1:]) for row in rows], _FOUND)


# -- progress ----------------------------------------------------------------------------------------------------------


class _Progress:
    """Reports how many tasks of the running stage are done."""

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
