"""Copies the topic `orders` to Parquet files, each record exactly once, despite broker restarts.

python examples/spark_through_a_restart.py [BOOTSTRAP DIR]  (pip install 'kafka-sluice[spark]', and Java)

Without arguments, it starts a broker, writes 1,000 orders, and stops the broker for 5 s while an impatient query reads.

If a broker is unavailable for less than Spark's timeout (60 s for a read), a batch only takes longer. After that the
query fails; a new one continues from its checkpoint, and ignores files of the failed batch.
"""
# ruff: noqa: T201  (a program that prints)

import sys
from tempfile import mkdtemp

from own_broker import given_or_own, outage
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from sluice.spark.session import open_session

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


# Fails a query after 1.5 s, for which Spark would wait 60 to 120 s.
IMPATIENT = {
    "kafka.request.timeout.ms": "1000",
    "kafka.default.api.timeout.ms": "1500",
    "kafkaConsumer.pollTimeoutMs": "1500",
}

if __name__ == "__main__":
    with given_or_own() as (bootstrap, broker):
        if broker is not None:
            broker.cluster.create_topic("orders", 2)
            for partition in range(2):
                broker.client().send("orders", *map(str, range(500)), partition=partition)
        folder = mkdtemp() if broker else sys.argv[2]
        # Four attempts per task, as on a cluster. The log would show each failure.
        settings = {"spark.log.level": "OFF"} if broker else {}
        spark = open_session("through a restart", master="local[2,4]", settings=settings)
        with outage(broker, when=lambda: bool(broker and broker.journal.requests(api="Fetch")), for_s=5):
            tries = copy(spark, bootstrap, folder, **(IMPATIENT if broker else {}))
        orders = spark.read.parquet(f"{folder}/orders")
        different = orders.distinct().count()
        print(f"{orders.count()} orders, {different} different ones; the query was started {tries} time(s)")
