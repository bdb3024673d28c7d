"""Reads a topic once, and shows each partition's number of records and first and last timestamps.

python examples/spark/batch_read.py TOPIC           (pip install '.[spark]', and Java)
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluice.pipeline.session import open_session


def partitions(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    """Return one row per partition with records."""
    records = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.client.id", "batch-read")
        .option("subscribe", topic)
        .load()
    )
    by_partition = records.groupBy("partition").agg(
        f.count("offset").alias("records"), f.min("timestamp").alias("first"), f.max("timestamp").alias("last")
    )
    return by_partition.orderBy("partition")


if __name__ == "__main__":
    topic, *bootstrap = sys.argv[1:]
    spark = open_session("batch read", master="local[2]")
    partitions(spark, *(bootstrap or ["127.0.0.1:9092"]), topic).show(truncate=False)
