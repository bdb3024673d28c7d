"""Writes about 2 MB/s to the topic `load` until stopped, above the produce quota in docker-compose.yml.

spark-submit examples/spark/steady_stream.py BOOTSTRAP [RECORDS_PER_S]

Its batches are slower than planned; /metrics, the web page and Grafana show the throttling.
"""

import sys
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


if __name__ == "__main__":
    bootstrap, records_per_s = [*sys.argv[1:], "2000"][:2]
    session = SparkSession.builder.appName("steady stream").getOrCreate()
    start(session, bootstrap, int(records_per_s), mkdtemp()).awaitTermination()
