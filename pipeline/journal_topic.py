"""The journal's topic, as jobs follow it by Structured Streaming: its events, and what is none kept apart."""

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from .events import REASON, Kinds, parsed

JOURNAL_TOPIC = "__sluice_journal"


class Journal(NamedTuple):
    """Where events are read."""

    bootstrap: str
    topic: str = JOURNAL_TOPIC
    starting_offsets: str = "earliest"
    # Whether to go on where records are gone that were not read yet; else that ends the job.
    skip_lost: bool = False


def read(session: SparkSession, journal: Journal, client_id: str, kinds: Kinds) -> DataFrame:
    """The topic's records, with `event` and `reason` (see events.py), as they come.

    The job's requests have a client id, so that a quota can be set for it, and it can be told from others.
    """
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
    """The records that are no journal events, as they were, with the reason."""
    bad = records.where(f.col(REASON).isNotNull())
    return bad.select("topic", "partition", "offset", "timestamp", REASON, "key", "value").observe(
        "quarantine", f.count(f.lit(1)).alias("quarantined")
    )
