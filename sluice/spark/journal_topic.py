"""The journal's topic as a stream of Structured Streaming, with invalid records separated."""

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

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
