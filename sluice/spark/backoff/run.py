"""One run of the `backoff` job: its inputs, and its verdicts or their counts on the screen, as JSON or in files."""

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sluice.spark.failures import spark_errors_in_one_line
from sluice.spark.progress import Tally, run_queries
from sluice.spark.streaming import Journal, json_lines
from sluice.spark.throttle.run import show_quarantine
from sluice.text.error_text import printable

from .files import Sinks, judge_files, start
from .job import JobSettings

ORDER = ("began", "host", "key")
_MOST_ROWS = 30


def show_rows(out: Console, rows: DataFrame) -> None:
    newest = rows.orderBy(*ORDER).tail(_MOST_ROWS)
    if not newest:
        return
    shown = Table("from", "host", "client id", "operation", "statement", "verdict", "reason", box=None)
    for row in newest:
        shown.add_row(*map(Text, _cells(row)))
    out.print(shown)


def counts(rows: DataFrame) -> DataFrame:
    return rows.groupBy("statement", "state").agg(
        f.count_distinct("host", "client_id").alias("clients"), f.count(f.lit(1)).alias("rows")
    )


def show_counts(out: Console, counted: DataFrame) -> None:
    shown = Table("statement", "verdict", box=None)
    for heading in ("clients", "rows"):
        shown.add_column(heading, justify="right")
    for row in counted.orderBy("statement", "state").collect():
        shown.add_row(row["statement"], row["state"], f"{row['clients']:,}", f"{row['rows']:,}")
    out.print(shown)


def _cells(row: Row) -> list[str]:
    operation = f"{row['kind']} {row['key']}"
    named = [printable(row[name]) for name in ("host", "client_id")]
    return [
        f"{row['began']:%H:%M:%S}",
        *named,
        printable(operation),
        row["statement"],
        row["state"],
        printable(row["why"]),
    ]


__all__ = ["JobSettings", "run"]


def run(
    session: SparkSession,
    inputs: Sequence[str],
    journal: Journal,
    settings: JobSettings,
    output: str | None,
    trigger: str | None,
    echo: Callable[[str], None] | None,
) -> None:
    """Judge the events of files, or of the journal's topic without any; `echo` prints rows as JSON."""
    out, log = Console(), Console(stderr=True)
    with spark_errors_in_one_line():
        if output is not None and inputs:
            found = counts(judge_files(session, inputs, settings, output))
            if echo is None:
                show_counts(out, found)
            else:
                json_lines(echo, "statement", "state")(found)
            return
        show = (lambda rows: show_rows(out, rows)) if echo is None else json_lines(echo, *ORDER)
        sinks = Sinks(output, show, lambda rows: show_quarantine(log, rows))
        queries = start(session, journal, settings, sinks, trigger)
        run_queries(queries, _summary, out if echo is None else log, log)


def _summary(tallies: Sequence[Tally]) -> str:
    found, quarantine = (tally.total for tally in tallies)
    parts = [
        f"{found.of('events'):,} events",
        f"{found.of('verdicts'):,} verdicts",
        f"{quarantine.of('quarantined'):,} quarantined",
        f"{found.late:,} late",
    ]
    parts += [f"{found.of('lost'):,} lost before they were read"] if found.of("lost") else []
    return ", ".join(parts)
