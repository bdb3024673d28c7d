"""Reads a topic once with Spark, and shows each partition's number of records and first and last timestamps.

python examples/spark_batch_read.py [BOOTSTRAP TOPIC]       (pip install 'kafka-sluice[spark]', and Java)

Without arguments, it starts a broker and writes 600 records to three partitions of a topic.
"""

import sys

from own_broker import given_or_own
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluice import SyncBroker
from sluice.spark.session import open_session

TOPIC = "measurements"


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


def write(broker: SyncBroker) -> None:
    broker.cluster.create_topic(TOPIC, 3)
    for partition in range(3):
        broker.client().send(TOPIC, *map(str, range(100 * (partition + 1))), partition=partition)


if __name__ == "__main__":
    with given_or_own() as (bootstrap, broker):
        if broker is not None:
            write(broker)
        spark = open_session("batch read", master="local[2]")
        partitions(spark, bootstrap, TOPIC if broker else sys.argv[2]).show(truncate=False)
