"""What all streaming jobs share: the journal's topic as input, with invalid records separated, and their outputs."""

from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.readwriter import DataStreamWriter

from .events import REASON, Kinds, parsed

JOURNAL_TOPIC = "__sluice_journal"


class Journal(NamedTuple):
    bootstrap: str
    topic: str = JOURNAL_TOPIC
    starting_offsets: str = "earliest"
    skip_lost: bool = False  # continue if the topic deleted unread records; otherwise the job fails


def read(session: SparkSession, journal: Journal, client_id: str, kinds: Kinds) -> DataFrame:
    """Return the stream of the topic's records, with the columns `event` and `reason` of events.py."""
    records = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", journal.bootstrap)
        .option("kafka.client.id", client_id)
        .option("subscribe", journal.topic)
        .option("startingOffsets", journal.starting_offsets)
        .option("failOnDataLoss", str(not journal.skip_lost).lower())
        .load()
    )
    return parsed(records, f.col("value").cast("string"), kinds)


def quarantined(records: DataFrame) -> DataFrame:
    bad = records.where(f.col(REASON).isNotNull())
    return bad.select("topic", "partition", "offset", "timestamp", REASON, "key", "value").observe(
        "quarantine", f.count(f.lit(1)).alias("quarantined")
    )


Show = Callable[[DataFrame], None]


def parquet(writer: DataStreamWriter, output: str, name: str) -> DataStreamWriter:
    checkpoint = f"{output}/checkpoints/{name}"
    return writer.format("parquet").option("path", f"{output}/{name}").option("checkpointLocation", checkpoint)


def shown(writer: DataStreamWriter, show: Show) -> DataStreamWriter:
    return writer.foreachBatch(lambda rows, _: show(rows))


def triggered(writer: DataStreamWriter, trigger: str | None) -> DataStreamWriter:
    """Set the interval between batches; None stops the query at the current end of its input."""
    return writer.trigger(availableNow=True) if trigger is None else writer.trigger(processingTime=trigger)


def json_lines(echo: Callable[[str], None], *order: str) -> Show:
    """Return a function that prints all rows as JSON without nulls, one object per line, sorted by these columns."""

    def show(rows: DataFrame) -> None:
        for row in rows.orderBy(*order).select(f.to_json(f.struct("*")).alias("line")).toLocalIterator():
            echo(row["line"])

    return show
