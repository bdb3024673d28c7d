"""Writes about 2 MB/s to the topic `load` until stopped, more than the produce quota in docker-compose.yml allows.

python examples/spark_steady_stream.py                                 (pip install 'kafka-sluice[spark]', and Java)
spark-submit examples/spark_steady_stream.py BOOTSTRAP [RECORDS_PER_S]

The batches take longer than planned; /metrics, the web page and Grafana show the throttling. Without arguments, it
starts a broker with a quota of 1 MB/s, and prints four batches.
"""
# ruff: noqa: T201, TID251  (a program that prints, and waits in real time)

import sys
import time
from tempfile import mkdtemp

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

CLIENT_ID = "spark-stream"
_RECORD_BYTES = 1000


def start(spark: SparkSession, bootstrap: str, records_per_s: int, checkpoint: str) -> StreamingQuery:
    """Start the stream; one client id, so one quota, for all writers."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", records_per_s).load()
    value = f.rpad(f.col("value").cast("string"), _RECORD_BYTES, ".")
    records = rows.select(f.col("value").cast("string").alias("key"), value.alias("value"))
    writer = records.writeStream.format("kafka").option("checkpointLocation", checkpoint)
    return writer.options(
        **{"kafka.bootstrap.servers": bootstrap, "kafka.client.id": CLIENT_ID, "topic": "load"}
    ).start()


def story() -> None:
    from own_broker import given_or_own

    from sluice.spark.session import open_session

    with given_or_own() as (bootstrap, broker):
        broker.cluster.create_topic("load", 2)
        broker.quota(client_id=CLIENT_ID, produce="1M")
        # The log would show the batch that the end interrupts.
        spark = open_session("steady stream", master="local[2]", settings={"spark.log.level": "OFF"})
        query = start(spark, bootstrap, 2000, mkdtemp())
        printed: set[int] = set()
        ends = time.monotonic() + 30
        while len(printed) < 4 and time.monotonic() < ends:
            time.sleep(0.2)
            for progress in query.recentProgress:
                if progress["numInputRows"] and progress["batchId"] not in printed:
                    printed.add(progress["batchId"])
                    seconds = progress["batchDuration"] / 1000
                    print(f"{progress['numInputRows']:5d} records in {seconds:4.1f} s", flush=True)
        query.stop()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        story()
    else:
        bootstrap, records_per_s = [*sys.argv[1:], "2000"][:2]
        session = SparkSession.builder.appName("steady stream").getOrCreate()
        start(session, bootstrap, int(records_per_s), mkdtemp()).awaitTermination()
