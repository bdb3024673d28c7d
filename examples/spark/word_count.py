"""Counts words from the topic `lines` to the topic `words`, and prints how long quotas throttled the job.

python examples/spark/word_count.py                 (pip install '.[spark]', and Java)

With `kafka.client.id` the whole job has one quota; without it, each of Spark's consumers has a separate one.
    sluice quota set --client word-count producer_byte_rate=20k consumer_byte_rate=100k
"""
# ruff: noqa: T201  (a program that prints)

import json
import sys
from pathlib import Path
from tempfile import mkdtemp
from urllib.request import urlopen

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from sluice.pipeline.session import open_session

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


if __name__ == "__main__":
    bootstrap, admin = sys.argv[1:] or ("127.0.0.1:9092", "http://127.0.0.1:9644")
    spark = open_session("word count", master="local[2]")
    count_words(spark, bootstrap, str(Path(mkdtemp()) / "checkpoint"))
    for quota, ms in sorted(waited_ms(admin).items()):
        print(f"throttled by the {quota} quota for {ms / 1000:.1f} s")
