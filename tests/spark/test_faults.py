"""Spark jobs during broker failures: the right result, or the failure that their settings specify."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Timer

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sluice import SyncBroker
from sluice.journal_events import Request
from tests.spark.kafka_data import PATIENCE_S, consume, produce
from tests.spark.streams import Folder, stream

RECORDS = 4000
# Many small requests, so that a failure hits in the middle.
SMALL_FETCHES = {"kafka.max.partition.fetch.bytes": "1000", "kafka.fetch.max.bytes": "1000"}
SMALL_BATCHES = {"kafka.batch.size": "300", "kafka.linger.ms": "0"}
IMPATIENT = {"kafka.request.timeout.ms": "1000", "kafka.default.api.timeout.ms": "1500"}


@pytest.fixture
def data(broker: SyncBroker, topic: str) -> str:
    """A topic with the numbers up to 4000, half of them in each partition, in small batches."""
    for index in (0, 1):
        produce(broker.bootstrap, topic, map(str, range(index, RECORDS, 2)), partition=index, batch_bytes=500)
    return topic


@pytest.fixture
def on_one_broker(broker: SyncBroker, topic: str) -> str:
    """The same topic on broker 1 alone, without another replica."""
    name = f"{topic}-alone"
    broker.cluster.create_topic(name, assignments={0: [1]})
    produce(broker.bootstrap, name, map(str, range(RECORDS)), batch_bytes=500)
    return name


def restart(broker: SyncBroker, away_s: float = 0.5) -> int:
    """Stop broker 1 as if killed, and restart it; return the last event before the stop."""
    broker.cluster.stop(1, controlled=False)
    by_then = broker.journal.last_seq
    Event().wait(away_s)
    broker.cluster.start(1)
    return by_then


def move_leader(broker: SyncBroker, topic: str) -> int:
    """Make the other broker the leader of partition 0; return the last event before the move."""
    leader = broker.cluster.partition(topic, 0).leader
    broker.cluster.move_leader(topic, 0, 3 - leader)
    return broker.journal.last_seq


def await_the_middle(broker: SyncBroker, api: str, client_id: str) -> None:
    """Wait for the client's first requests."""
    broker.wait_for(Request, api=api, client_id=client_id, times=3, timeout_s=PATIENCE_S)


def ended(query: StreamingQuery) -> None:
    assert query.awaitTermination(PATIENCE_S), "the query does not stop"


class TestReading:
    @pytest.mark.parametrize("fault", ["restart", pytest.param("leader move", marks=pytest.mark.spark_long)])
    def test_ends_with_every_record_once(
        self, fault: str, spark: SparkSession, broker: SyncBroker, data: str, sink: Folder
    ) -> None:
        disturb = partial(restart, broker) if fault == "restart" else partial(move_leader, broker, data)
        query = sink.start(stream(spark, broker, data, SMALL_FETCHES | {"kafka.client.id": data}))
        await_the_middle(broker, "Fetch", data)
        by_then = disturb()
        ended(query)
        assert broker.journal.requests(after=by_then, api="Fetch", client_id=data), "the job ended before the failure"
        assert sink.numbers == [*range(RECORDS)]

    @pytest.mark.spark_long
    def test_waits_for_a_broker_that_nobody_stands_in_for(
        self, spark: SparkSession, broker: SyncBroker, on_one_broker: str, sink: Folder
    ) -> None:
        options = SMALL_FETCHES | {"kafka.client.id": on_one_broker}
        query = sink.start(stream(spark, broker, on_one_broker, options))
        await_the_middle(broker, "Fetch", on_one_broker)
        by_then = restart(broker, away_s=2.0)
        ended(query)
        assert broker.journal.requests(after=by_then, api="Fetch", client_id=on_one_broker), (
            "the job ended before the failure"
        )
        assert sink.numbers == [*range(RECORDS)]


class TestWriting:
    @pytest.mark.parametrize("fault", [pytest.param("restart", marks=pytest.mark.spark_long), "leader move"])
    def test_ends_with_every_record_once(
        self, fault: str, spark: SparkSession, broker: SyncBroker, data: str, tmp_path: Path
    ) -> None:
        """Only within one attempt of a task: Spark's sink has no transactions."""
        out = f"{data}-out"
        broker.cluster.create_topic(out, 2, replication_factor=2)
        rows = stream(spark, broker, data).selectExpr("cast(number as string) as value")
        options = {"kafka.bootstrap.servers": broker.bootstrap, "kafka.client.id": out, "topic": out} | SMALL_BATCHES
        writer = rows.writeStream.format("kafka").options(**options).option("checkpointLocation", str(tmp_path))
        query = writer.trigger(availableNow=True).start()
        disturb = partial(restart, broker) if fault == "restart" else partial(move_leader, broker, out)
        await_the_middle(broker, "Produce", out)
        by_then = disturb()
        ended(query)
        assert broker.journal.requests(after=by_then, api="Produce", client_id=out), "the job ended before the failure"
        assert sorted(int(value) for _, value in consume(broker.bootstrap, out)) == [*range(RECORDS)]


@pytest.mark.spark_long
class TestABlackHoleOfTwentySeconds:
    """No response and no close, for less than the 30 s request timeout of Kafka's clients."""

    @pytest.fixture
    def black_hole(self, broker: SyncBroker) -> Callable[[], None]:
        def begin() -> None:
            Timer(20, broker.faults.add("black-hole").remove).start()

        return begin

    def test_makes_one_batch_longer(
        self, black_hole: Callable[[], None], spark: SparkSession, broker: SyncBroker, data: str, sink: Folder
    ) -> None:
        query = sink.start(stream(spark, broker, data, SMALL_FETCHES | {"kafka.client.id": data}))
        await_the_middle(broker, "Fetch", data)
        black_hole()
        ended(query)
        assert sink.numbers == [*range(RECORDS)]
        assert max(batch.batchDuration for batch in query.recentProgress) >= 20_000

    def test_makes_a_write_take_longer(
        self, black_hole: Callable[[], None], spark: SparkSession, broker: SyncBroker, topic: str
    ) -> None:
        rows = spark.range(100).selectExpr("cast(id as string) as value")
        black_hole()
        rows.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).option("topic", topic).save()
        assert sorted(int(value) for _, value in consume(broker.bootstrap, topic)) == [*range(100)]


@pytest.mark.spark_long
class TestWhenABrokerStaysAway:
    """Spark uses Kafka's timeouts, 60 s for reads and 120 s for writes, which options shorten."""

    def test_reading_gives_up_after_the_default_api_timeout_or_sparks_own(
        self, spark: SparkSession, broker: SyncBroker, on_one_broker: str, sink: Folder
    ) -> None:
        options = SMALL_FETCHES | IMPATIENT | {"kafka.client.id": on_one_broker, "kafkaConsumer.pollTimeoutMs": "2000"}
        query = sink.start(stream(spark, broker, on_one_broker, options))
        await_the_middle(broker, "Fetch", on_one_broker)
        broker.cluster.stop(1, controlled=False)
        try:
            with pytest.raises(StreamingQueryException, match=r"Timeout of 1500ms expired before|in 2000 milliseconds"):
                query.awaitTermination(PATIENCE_S)
        finally:
            broker.cluster.start(1)

    def test_writing_gives_up_after_the_delivery_timeout(
        self, spark: SparkSession, broker: SyncBroker, topic: str, tmp_path: Path
    ) -> None:
        out = f"{topic}-out"
        broker.cluster.create_topic(out, assignments={0: [1]})
        rows = spark.range(RECORDS).selectExpr("cast(id as string) as value")
        options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": out, "kafka.delivery.timeout.ms": "2000"}
        broker.cluster.stop(1, controlled=False)
        try:
            with pytest.raises(Exception, match=r"Expiring \d+ record\(s\) for .*:2\d\d\d ms has passed"):
                rows.write.format("kafka").options(**options, **{"kafka.request.timeout.ms": "1000"}).save()
        finally:
            broker.cluster.start(1)
