"""Structured Streaming from sluice: triggers, checkpoints, and deleted records."""

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from sluice import SyncBroker
from tests.spark.kafka_data import PATIENCE_S, delete_records, produce
from tests.spark.streams import Folder, stream


def numbers(*of: int) -> list[str]:
    return list(map(str, range(*of)))


def test_what_there_is_comes_in_batches_no_larger_than_is_said(
    spark: SparkSession, broker: SyncBroker, topic: str, sink: Folder
) -> None:
    produce(broker.bootstrap, topic, numbers(100))
    query = sink.write(stream(spark, broker, topic, {"maxOffsetsPerTrigger": "40"}))
    assert [batch.numInputRows for batch in query.recentProgress if batch.numInputRows] == [40, 40, 20]
    assert sink.numbers == [*range(100)]


def test_a_query_that_goes_on_where_another_ended_writes_each_record_once(
    spark: SparkSession, broker: SyncBroker, topic: str, sink: Folder
) -> None:
    produce(broker.bootstrap, topic, numbers(50))
    sink.write(stream(spark, broker, topic))
    produce(broker.bootstrap, topic, numbers(50, 150))
    # Stopped in the middle: only complete batches are kept.
    interrupted = sink.start(stream(spark, broker, topic, {"maxOffsetsPerTrigger": "30"}))
    broker.wait_for(lambda: interrupted.lastProgress is not None, timeout_s=PATIENCE_S)
    interrupted.stop()
    produce(broker.bootstrap, topic, numbers(150, 160), partition=1)
    sink.write(stream(spark, broker, topic))
    assert sink.numbers == [*range(160)]


def test_a_trigger_by_time_finds_what_comes_after_the_query_began(
    spark: SparkSession, broker: SyncBroker, topic: str
) -> None:
    produce(broker.bootstrap, topic, ["1"])
    rows = stream(spark, broker, topic, {"startingOffsets": "latest"})
    query = rows.writeStream.format("memory").queryName("later").trigger(processingTime="200 milliseconds").start()
    broker.wait_for(lambda: query.lastProgress is not None, timeout_s=PATIENCE_S)
    produce(broker.bootstrap, topic, ["2", "3"])
    query.processAllAvailable()
    query.stop()
    assert sorted(row.number for row in spark.table("later").collect()) == [2, 3]


class TestRecordsThatWereDeletedBeforeTheyWereRead:
    """The first ten of twenty records are deleted."""

    @pytest.fixture
    def begun(self, spark: SparkSession, broker: SyncBroker, topic: str, sink: Folder) -> None:
        """A stream that has read five records."""
        produce(broker.bootstrap, topic, numbers(5))
        sink.write(stream(spark, broker, topic))
        produce(broker.bootstrap, topic, numbers(5, 20))
        delete_records(broker.bootstrap, topic, before=10)

    @pytest.mark.usefixtures("begun")
    def test_end_the_query(self, spark: SparkSession, broker: SyncBroker, topic: str, sink: Folder) -> None:
        with pytest.raises(StreamingQueryException, match="Some data may have been lost"):
            sink.write(stream(spark, broker, topic))
        assert sink.numbers == [*range(5)]

    @pytest.mark.usefixtures("begun")
    def test_are_passed_over_where_that_is_allowed(
        self, spark: SparkSession, broker: SyncBroker, topic: str, sink: Folder
    ) -> None:
        sink.write(stream(spark, broker, topic, {"failOnDataLoss": "false"}))
        assert sink.numbers == [*range(5), *range(10, 20)]
