"""Spark writes to sluice: a batch, a stream, keys, headers and partitions."""

from pathlib import Path

from pyspark.sql import SparkSession

from sluice import SyncBroker
from tests.spark.kafka_data import PATIENCE_S, consume, produce
from tests.spark.streams import stream


def test_a_batch_is_written_with_keys_to_the_partitions_that_it_names(
    spark: SparkSession, broker: SyncBroker, topic: str
) -> None:
    rows = spark.createDataFrame([("a", "1", 0), ("b", "2", 1)], "key string, value string, partition int")
    rows.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).option("topic", topic).save()
    assert consume(broker.bootstrap, topic) == [(b"a", "1"), (b"b", "2")]


def test_headers_come_back_as_they_were_written(spark: SparkSession, broker: SyncBroker, topic: str) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap, "includeHeaders": "true"}
    rows = spark.sql("select 'v' as value, array(struct('h' as key, cast('1' as binary) as value)) as headers")
    rows.write.format("kafka").options(**options).option("topic", topic).save()
    (row,) = spark.read.format("kafka").options(**options).option("subscribe", topic).load().collect()
    assert [(header.key, bytes(header.value)) for header in row.headers] == [("h", b"1")]


def test_a_stream_goes_from_topic_to_topic_and_on_from_its_checkpoint(
    spark: SparkSession, broker: SyncBroker, topic: str, tmp_path: Path
) -> None:
    broker.cluster.create_topic(f"{topic}-out", 1)
    for begin in (0, 10):
        produce(broker.bootstrap, topic, map(str, range(begin, begin + 10)))
        rows = stream(spark, broker, topic).selectExpr("cast(number * number as string) as value")
        writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
        writer = writer.option("topic", f"{topic}-out").option("checkpointLocation", str(tmp_path))
        assert writer.trigger(availableNow=True).start().awaitTermination(PATIENCE_S)
    assert sorted(int(value) for _, value in consume(broker.bootstrap, f"{topic}-out", 1)) == [n * n for n in range(20)]
