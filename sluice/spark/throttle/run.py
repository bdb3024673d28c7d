"""One run of the `throttle` job: its windows on the screen, as JSON, in files or in a topic."""

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from rich.console import Console
from rich.table import Table

from sluice.spark.failures import spark_errors_in_one_line
from sluice.spark.progress import Tally, run_queries
from sluice.spark.streaming import Journal, json_lines

from .byte_quotas import ByteQuotas
from .job import Windows
from .sinks import Sinks, start

ORDER = ("start", "broker", "client_id", "api")
_MOST_ROWS = 30


def show_windows(out: Console, rows: DataFrame) -> None:
    newest = rows.orderBy(*ORDER).tail(_MOST_ROWS)
    if not newest:
        return
    shown = Table("from", "broker", "client id", "API", box=None)
    for heading in ("requests", "errors", "bytes/s", "quota", "throttle ms", "p99 ms"):
        shown.add_column(heading, justify="right")
    for row in newest:
        shown.add_row(*_cells(row))
    out.print(shown)


def show_quarantine(log: Console, rows: DataFrame) -> None:
    for row in rows.toLocalIterator():
        place = f"{row['topic']}-{row['partition']}@{row['offset']}"
        log.print(f"{place}: {row['reason']}", markup=False, highlight=False)


def _cells(row: Row) -> list[str]:
    quota = "" if row["quota"] is None else f"{row['quota']:,.0f}"
    latency = "" if row["latency_ms_p99"] is None else f"{row['latency_ms_p99']:,.1f}"
    counts = [f"{row[name]:,}" for name in ("requests", "errors")]
    whose = [f"{row['start']:%H:%M:%S}", str(row["broker"]), row["client_id"], row["api"]]
    return [*whose, *counts, f"{row['rate']:,.0f}", quota, f"{row['throttle_ms_sum']:,}", latency]


__all__ = ["Windows", "run"]


def run(
    session: SparkSession,
    journal: Journal,
    windows: Windows,
    quotas: ByteQuotas,
    output: str | None,
    to_topic: str | None,
    trigger: str | None,
    shows: bool,
    echo: Callable[[str], None] | None,
) -> None:
    """Count the events of the journal's topic; `echo` prints windows as JSON."""
    out, log = Console(), Console(stderr=True)
    show = (lambda rows: show_windows(out, rows)) if echo is None else json_lines(echo, *ORDER)
    sinks = Sinks(
        output,
        to_topic,
        show_windows=show if shows else None,
        show_quarantine=None if output is not None else lambda rows: show_quarantine(log, rows),
    )
    with spark_errors_in_one_line():
        queries = start(session, journal, windows, quotas, sinks, trigger)
        run_queries(queries.all, _summary, out if echo is None else log, log)


def _summary(tallies: Sequence[Tally]) -> str:
    windows, *_, quarantine = (tally.total for tally in tallies)
    parts = [
        f"{windows.of('events'):,} events",
        f"{quarantine.of('quarantined'):,} quarantined",
        f"{windows.late:,} late",
    ]
    parts += [f"{windows.of('lost'):,} lost before they were read"] if windows.of("lost") else []
    parts += [f"final before {windows.watermark}"] if windows.watermark else []
    return ", ".join(parts)
