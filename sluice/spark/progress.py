"""The progress of streaming queries, summed over Spark's reports of their batches."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

_POLL_S = 1
_NO_WATERMARK = "1970-01-01T00:00:00.000Z"  # Spark's initial value, until it has read an event


class Progress(NamedTuple):
    """The totals of a query since its start in this process."""

    late: int = 0  # groups of events that a batch dropped because they were late
    watermark: str = ""
    observed: Mapping[str, int] = MappingProxyType({})

    def of(self, name: str) -> int:
        return self.observed.get(name, 0)


class Tally:
    """The sum over the batches of one query. Poll it often: Spark keeps only the last hundred batches."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._last_batch: tuple[int, str] = (-1, "")
        self.total = Progress()

    def poll(self) -> Progress:
        for batch in self._query.recentProgress:
            # A trigger without data reports the previous batch again, with another timestamp.
            if (batch.batchId, batch.timestamp) > self._last_batch:
                self._last_batch = (batch.batchId, batch.timestamp)
                self.total = _added(self.total, batch)
        error = self._query.exception()
        if error is not None:
            raise error
        return self.total


def _follow(queries: Sequence[StreamingQuery], tallies: Iterable[Tally], show: Callable[[], None]) -> None:
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
        total.late + sum(operator.numRowsDroppedByWatermark for operator in batch.stateOperators),
        total.watermark if watermark == _NO_WATERMARK else watermark,
        observed,
    )
