"""A stream of numbers from a topic into a folder."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from sluice import SyncBroker
from tests.spark.kafka_data import PATIENCE_S


def stream(spark: SparkSession, broker: SyncBroker, topic: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """Return the values of a topic as numbers."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .options(**{"startingOffsets": "earliest", **(options or {})})
        .load()
    )
    return records.select(f.col("value").cast("string").cast("bigint").alias("number"))


class Folder:
    """A Parquet sink with its checkpoint."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder

    def start(self, rows: DataFrame) -> StreamingQuery:
        """Write all available records and stop."""
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(self._folder / "checkpoint"))
        return writer.trigger(availableNow=True).start(str(self._folder / "rows"))

    def write(self, rows: DataFrame) -> StreamingQuery:
        query = self.start(rows)
        assert query.awaitTermination(PATIENCE_S), "the query does not stop"
        return query

    @property
    def numbers(self) -> list[int]:
        return sorted(row.number for row in self._spark.read.parquet(str(self._folder / "rows")).collect())
