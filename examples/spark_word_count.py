"""Counts words from the topic `lines` to the topic `words`, and prints how long quotas throttled the job.

python examples/spark_word_count.py [BOOTSTRAP ADMIN]       (pip install 'kafka-sluice[spark]', and Java)

Without arguments, it starts a broker, writes 3,000 different words, and allows the job 5 kB/s, which is less than it
writes. With `kafka.client.id` the whole job has one quota; without it, each of Spark's consumers has a separate one.
"""
# ruff: noqa: T201, TID251  (a program that prints, and measures real time)

import json
import sys
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic
from urllib.request import urlopen

from own_broker import given_or_own
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from sluice import SyncBroker
from sluice.spark.session import open_session

CLIENT_ID = "word-count"


def count_words(spark: SparkSession, bootstrap: str, checkpoint: str) -> None:
    """Count all records so far; the next call continues with new ones."""
    kafka = {"kafka.bootstrap.servers": bootstrap, "kafka.client.id": CLIENT_ID}
    lines = spark.readStream.format("kafka").options(**kafka, subscribe="lines", startingOffsets="earliest").load()
    words = lines.select(f.explode(f.split(f.col("value").cast("string"), " +")).alias("key"))
    counts = words.groupBy("key").agg(f.count("key").cast("string").alias("value"))
    writer = counts.writeStream.outputMode("update").format("kafka").options(**kafka, topic="words")
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


def waited_ms(admin: str) -> dict[str, int]:
    """Return the job's throttle time by quota, from the broker's journal."""
    waited: dict[str, int] = {}
    with urlopen(f"{admin}/api/v1/journal?kind=throttle&limit=10000&client_id={CLIENT_ID}") as answer:  # noqa: S310
        for event in json.load(answer)["events"]:
            waited[event["quota"]] = waited.get(event["quota"], 0) + event["throttle_time_ms"]
    return waited


def write_lines(broker: SyncBroker) -> None:
    for topic in ("lines", "words"):
        broker.cluster.create_topic(topic, 2)
    lines = (" ".join(f"word-{line}-{number}" for number in range(30)) for line in range(100))
    broker.client().send("lines", *lines)
    broker.quota(client_id=CLIENT_ID, produce=5_000)


if __name__ == "__main__":
    with given_or_own() as (bootstrap, broker):
        if broker is not None:
            write_lines(broker)
        spark = open_session("word count", master="local[2]", settings={"spark.sql.shuffle.partitions": "2"})
        started = monotonic()
        count_words(spark, bootstrap, str(Path(mkdtemp()) / "checkpoint"))
        print(f"the job took {monotonic() - started:.1f} s")
        for quota, ms in sorted(waited_ms(sys.argv[2] if broker is None else broker.admin).items()):
            print(f"throttled by the {quota} quota for {ms / 1000:.1f} s")
