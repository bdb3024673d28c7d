"""The outputs of the `throttle` job: Parquet files, a topic, a table on the screen. Each is a separate query.

Parquet is exactly once: Spark stores its position in the checkpoint, and a log of valid files beside the files. Spark's
Kafka sink is at least once: after a crash the topic may have duplicates.
"""

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from sluice.spark.streaming import Journal, Show, parquet, quarantined, read, shown, triggered

from .byte_quotas import ByteQuotas
from .job import CLIENT_ID, KINDS, Windows, windows


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
