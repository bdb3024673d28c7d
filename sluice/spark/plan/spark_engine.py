"""The engine on Spark: splits are read in parallel, then each client's requests on each broker are replayed.

Both steps are the functions of `local_engine`, in Spark's Python workers, which also write the tables. Between them
Spark shuffles bytes: data frames would add a tenth to the time, for planning and conversions.

Executors need this package, and the input and output at the same paths.
"""

import gc
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeAlias
from zlib import crc32

from sluice.spark.charges.charges import Client
from sluice.spark.charges.sources import read
from sluice.spark.splits import Split

from .analysis import Engine, OnProgress, Settings
from .local_engine import replay_clients
from .tables import QUARANTINE, QUARANTINED, Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A local session has too little work for optimizing compilation.
SETTINGS = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

_TASKS_PER_CORE = 8  # balances load: a task with large clients should not be the only one left
_SPLITS_PER_TASK = 2  # at least; bounds the memory of a task
_POLL_S = 0.5

_Place: TypeAlias = tuple[int, int]  # in the order of reading
_NO_CLIENT = Client("Produce", "", "", "")  # the key of counts


def engine_on(session: "SparkSession") -> Engine:
    return partial(_run, session)


def _run(
    session: "SparkSession", splits: Sequence[Split], settings: Settings, out: Path, on_progress: OnProgress
) -> dict[str, int]:
    context, out = session.sparkContext, out.absolute()
    tasks = max(context.defaultParallelism * _TASKS_PER_CORE, len(splits) // _SPLITS_PER_TASK)
    found = (
        context.parallelize(list(enumerate(splits)), len(splits))
        .mapPartitions(partial(_read_splits, settings=settings, out=out))
        .partitionBy(tasks, _hash)
        .mapPartitionsWithIndex(partial(_replay, settings=settings, out=out))
    )
    counts: Counter[str] = Counter()
    with _Progress(session, on_progress):
        for each in found.collect():  # one per split
            counts.update(each)
    return dict(counts)


# -- in Spark's workers ------------------------------------------------------------------------------------------------


def _read_splits(
    splits: Iterable[tuple[int, Split]], settings: Settings, out: Path
) -> Iterator[tuple[Client, tuple[_Place, bytes] | dict[str, int]]]:
    _freeze()
    for place, split in splits:
        quarantine = Writer(out, QUARANTINE, QUARANTINED, place)
        for number, found in enumerate(read(split, settings.by)):
            for client, packed in found.charges.items():
                yield client, ((place, number), packed)
            for row in found.quarantined:
                quarantine.add(row)
            if found.is_last:
                yield _NO_CLIENT, found.counts
        quarantine.close()


def _hash(client: Client) -> int:
    return crc32(repr(client).encode())  # hash() differs between processes


def _replay(
    part: int, rows: Iterable[tuple[Client, tuple[_Place, bytes] | dict[str, int]]], settings: Settings, out: Path
) -> Iterator[dict[str, int]]:
    _freeze()
    parts: defaultdict[Client, dict[_Place, bytes]] = defaultdict(dict)
    for client, found in rows:
        if isinstance(found, dict):
            yield found
        else:
            parts[client].update([found])
    ordered = {client: [packed for _, packed in sorted(found.items())] for client, found in parts.items()}
    replay_clients(ordered, settings, out, lambda *_: None, part)


# Exempts imported modules from the garbage collection after each task, which would take 40 ms.
_freeze = cache(gc.freeze)


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
