"""Input and output of the `backoff` job.

It reads the journal's topic or exports. The output folder contains `verdicts`, by date; `quarantine`, the records that
are not journal events, with reasons; and, for a stream, `checkpoints`, so that each verdict is written once.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from sluice.journal_events import Gap
from sluice.spark.events import REASON, lines, parsed
from sluice.spark.streaming import Journal, Show, parquet, quarantined, read, shown, triggered

from .job import CLIENT_ID, JobSettings, rows, rows_at_once
from .spans import KINDS

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
        writers = (
            parquet(dated.partitionBy("date"), sinks.output, VERDICTS),
            parquet(bad, sinks.output, QUARANTINE),
        )
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
        found.withColumn("began", _moment("began_us"))
        .withColumn("ended", _moment("ended_us"))
        .drop("began_us", "ended_us")
        .withColumn("date", f.to_date("began"))
    )


def _moment(column: str) -> Column:
    return f.timestamp_micros(column)
