"""One run of the `throttle` job: its windows on the screen, as JSON, in files or in a topic, each by its own query.

Parquet is exactly once: Spark stores its position in the checkpoint, and a log of valid files beside the files. Spark's
Kafka sink is at least once: after a crash the topic may have duplicates.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from rich.console import Console
from rich.table import Table

from sluice.spark.failures import spark_errors_in_one_line
from sluice.spark.progress import Tally, run_queries
from sluice.spark.streaming import Journal, Show, json_lines, parquet, quarantined, read, shown, triggered

from .byte_quotas import ByteQuotas
from .job import CLIENT_ID, KINDS, Windows, windows

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


class Sinks(NamedTuple):
    """The outputs; `show_windows` and `show_quarantine` receive the new rows after each trigger."""

    output: str | None = None  # a folder on any storage that Spark supports
    to_topic: str | None = None  # only with `output`, for the checkpoint
    show_windows: Show | None = None
    show_quarantine: Show | None = None


class Queries(NamedTuple):
    windows: list[StreamingQuery]
    quarantine: StreamingQuery

    @property
    def all(self) -> list[StreamingQuery]:
        return [*self.windows, self.quarantine]


def start(
    session: SparkSession, journal: Journal, settings: Windows, quotas: ByteQuotas, sinks: Sinks, trigger: str | None
) -> Queries:
    """Start the job; `trigger` is an interval, or None to stop at the topic's current end."""
    assert sinks.to_topic is None or sinks.output is not None, "to_topic needs output, for the checkpoint"
    records = read(session, journal, CLIENT_ID, KINDS)
    rows = windows(records, settings, quotas)
    # Only final windows: those whose time for late events is over.
    writers = []
    if sinks.output is not None:
        dated = rows.withColumn("date", f.to_date("start")).writeStream.partitionBy("date")
        writers.append(parquet(dated, sinks.output, "windows"))
    if sinks.to_topic is not None:
        writers.append(_topic(rows, journal.bootstrap, sinks.to_topic, f"{sinks.output}/checkpoints/topic"))
    if sinks.show_windows is not None:
        writers.append(shown(rows.writeStream.outputMode("update"), sinks.show_windows))
    bad = quarantined(records).writeStream
    if sinks.output is not None:
        quarantine = parquet(bad, sinks.output, "quarantine")
    else:
        assert sinks.show_quarantine is not None, "expected output or show_quarantine"
        quarantine = shown(bad, sinks.show_quarantine)
    started = [triggered(writer, trigger).start() for writer in (*writers, quarantine)]
    return Queries(started[:-1], started[-1])


def _topic(rows: DataFrame, bootstrap: str, topic: str, checkpoint: str) -> DataStreamWriter:
    records = rows.select(f.col("client_id").alias("key"), f.to_json(f.struct("*")).alias("value"))
    return (
        records.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.client.id", CLIENT_ID)
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
    )
