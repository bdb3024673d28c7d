"""One run of the `backoff` job: its inputs, and its verdicts or their counts on the screen, as JSON or in files.

The output folder contains `verdicts`, by date; `quarantine`, the records that are not journal events, with reasons;
and, for a stream, `checkpoints`, so that each verdict is written once.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sluice.journal_events import Gap
from sluice.spark.events import REASON, lines, parsed
from sluice.spark.failures import spark_errors_in_one_line
from sluice.spark.progress import Tally, run_queries
from sluice.spark.streaming import Journal, Show, json_lines, parquet, quarantined, read, shown, triggered
from sluice.spark.throttle.run import show_quarantine
from sluice.text.error_text import printable

from .job import CLIENT_ID, JobSettings, rows, rows_at_once
from .spans import KINDS

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


VERDICTS, QUARANTINE = "verdicts", "quarantine"
_READ = (*KINDS, Gap)


class Sinks(NamedTuple):
    """The outputs: a folder on any storage that Spark supports, or the two functions if `output` is None."""

    output: str | None
    show_rows: Show
    show_quarantine: Show


class Queries(NamedTuple):
    verdicts: StreamingQuery
    quarantine: StreamingQuery


def start(session: SparkSession, journal: Journal, settings: JobSettings, sinks: Sinks, trigger: str | None) -> Queries:
    """Start the job on a topic; `trigger` is an interval, or None to stop at the topic's current end."""
    records = read(session, journal, CLIENT_ID, _READ)
    bad = quarantined(records).writeStream
    dated = _dated(rows(records, settings)).writeStream
    if sinks.output is not None:
        writers = (parquet(dated.partitionBy("date"), sinks.output, VERDICTS), parquet(bad, sinks.output, QUARANTINE))
    else:
        writers = shown(dated, sinks.show_rows), shown(bad, sinks.show_quarantine)
    return Queries(*(triggered(writer, trigger).start() for writer in writers))


def judge_files(session: SparkSession, inputs: Sequence[str], settings: JobSettings, output: str) -> DataFrame:
    records = parsed(lines(session, inputs), f.col("value"), _READ).cache()
    _dated(rows_at_once(records, settings)).write.partitionBy("date").parquet(f"{output}/{VERDICTS}")
    records.where(f.col(REASON).isNotNull()).select(REASON, "value").write.parquet(f"{output}/{QUARANTINE}")
    records.unpersist()
    return session.read.parquet(f"{output}/{VERDICTS}")


def _dated(found: DataFrame) -> DataFrame:
    return (
        found.withColumn("began", f.timestamp_micros("began_us"))
        .withColumn("ended", f.timestamp_micros("ended_us"))
        .drop("began_us", "ended_us")
        .withColumn("date", f.to_date("began"))
    )
