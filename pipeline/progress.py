"""How far streaming queries are, added up from what Spark tells of each of their batches."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

_POLL_S = 1
_NO_WATERMARK = "1970-01-01T00:00:00.000Z"  # what Spark has before it has seen an event


class Progress(NamedTuple):
    """What a query has done since it was started here."""

    batches: int = 0
    read: int = 0  # records
    late: int = 0  # groups of events that were left out of a batch because they came too late
    watermark: str = ""
    observed: Mapping[str, int] = MappingProxyType({})  # what the job counts itself

    def of(self, name: str) -> int:
        """One of the job's own counts."""
        return self.observed.get(name, 0)


class Tally:
    """Adds up the batches of one query. It has to look before Spark forgets them: it keeps the last hundred."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._last_batch: tuple[int, str] = (-1, "")
        self.total = Progress()

    def poll(self) -> Progress:
        """Return the totals so far. Raises the error that the query failed with."""
        for batch in self._query.recentProgress:
            # A trigger without data tells of the batch before, under another time.
            if (batch.batchId, batch.timestamp) > self._last_batch:
                self._last_batch = (batch.batchId, batch.timestamp)
                self.total = _added(self.total, batch)
        error = self._query.exception()
        if error is not None:
            raise error
        return self.total


def _follow(queries: Sequence[StreamingQuery], tallies: Iterable[Tally], show: Callable[[], None]) -> None:
    """Calls `show` now and then while they run, until the last has ended or one of them fails."""
    tallies = list(tallies)
    while active := [query for query in queries if query.isActive]:
        active[0].awaitTermination(_POLL_S)
        for tally in tallies:
            tally.poll()
        show()
    for tally in tallies:
        tally.poll()


def run_queries(
    queries: Sequence[StreamingQuery], summary: Callable[[list[Tally]], str], out: Console, log: Console
) -> None:
    """Show the summary of the queries on `log` while they run, until they end or Ctrl-C, and then print it on `out`."""
    tallies = [Tally(query) for query in queries]
    with suppress(KeyboardInterrupt), log.status("") as status:
        _follow(queries, tallies, lambda: status.update(summary(tallies)))
    for query in queries:
        query.stop()
    out.print(summary(tallies), highlight=False)


def _added(total: Progress, batch: StreamingQueryProgress) -> Progress:
    observed = dict(total.observed)
    for row in batch.observedMetrics.values():
        for name, count in row.asDict().items():
            observed[name] = observed.get(name, 0) + int(count or 0)
    watermark = batch.eventTime.get("watermark", _NO_WATERMARK)
    return Progress(
        total.batches + 1,
        total.read + batch.numInputRows,
        total.late + sum(operator.numRowsDroppedByWatermark for operator in batch.stateOperators),
        total.watermark if watermark == _NO_WATERMARK else watermark,
        observed,
    )
