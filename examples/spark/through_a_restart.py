"""Copies the topic `orders` to Parquet files, each record exactly once, despite broker restarts.

python examples/spark/through_a_restart.py DIR      (pip install '.[spark]', and Java)

If a broker is unavailable for less than Spark's timeout (60 s for a read), a batch only takes longer. After that the
query fails; a new one continues from its checkpoint, and ignores files of the failed batch.
"""
# ruff: noqa: T201  (a program that prints)

import sys

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from sluice.pipeline.session import open_session

MOST_TRIES = 10


def copy(spark: SparkSession, bootstrap: str, folder: str, **patience: str) -> int:
    """Copy all records so far, and return the number of query starts. `patience`: options of Kafka's client."""
    for tries in range(1, MOST_TRIES + 1):
        orders = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", bootstrap)
            .option("subscribe", "orders")
            .option("startingOffsets", "earliest")
            .options(**patience)
            .load()
        )
        writer = orders.selectExpr("partition", "offset", "cast(value as string) as value").writeStream
        writer = (
            writer.format("parquet").option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
        )
        try:
            writer.start(f"{folder}/orders").awaitTermination()
        except StreamingQueryException:
            if tries == MOST_TRIES:
                raise
        else:
            break
    return tries


if __name__ == "__main__":
    folder, *bootstrap = sys.argv[1:]
    spark = open_session("through a restart", master="local[2,4]")  # four attempts per task, as on a cluster
    tries = copy(spark, *(bootstrap or ["127.0.0.1:9092"]), folder)
    print(f"{spark.read.parquet(f'{folder}/orders').count()} orders, the query was started {tries} time(s)")
