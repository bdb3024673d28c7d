"""Spark under quotas: its client ids, and the right result despite throttling."""

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from sluice import SyncBroker
from sluice.journal_events import Throttle
from tests.spark.kafka_data import consume, produce

RECORDS, RECORD_BYTES = 300, 1000  # of each of two partitions
PER_SECOND = 200_000  # the quota: one partition passes at once, within the two-second burst


@pytest.fixture(scope="module")
def data(broker: SyncBroker) -> str:
    """A topic of 600 kB on one broker, since quotas apply per broker."""
    broker.cluster.create_topic("under-quota", assignments={0: [1], 1: [1]})
    for partition in (0, 1):
        values = (f"{partition}-{number}".ljust(RECORD_BYTES) for number in range(RECORDS))
        produce(broker.bootstrap, "under-quota", values, partition=partition, batch_bytes=20_000)
    return "under-quota"


def read(spark: SparkSession, broker: SyncBroker, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
    return (
        reader.option("subscribe", topic).option("kafka.max.partition.fetch.bytes", "40000").options(**options).load()
    )


def throttles(broker: SyncBroker, after: int, quota: str) -> dict[str, int]:
    """Return the throttle time of each client."""
    found: dict[str, int] = {}
    for event in broker.journal.events(after=after, kind="throttle"):
        assert isinstance(event, Throttle)
        if event.quota == quota:
            found[event.client_id] = found.get(event.client_id, 0) + event.throttle_time_ms
    return found


def fetched_by(broker: SyncBroker, topic: str, after: int) -> set[str]:
    requests = broker.journal.requests(after=after, api="Fetch")
    return {one.client_id for one in requests if topic in [partition.topic for partition in one.partitions]}


def test_a_quota_of_all_clients_is_one_for_each_consumer_as_spark_gives_each_an_id(
    spark: SparkSession, broker: SyncBroker, data: str
) -> None:
    before = broker.journal.last_seq
    with broker.quota(fetch=PER_SECOND):
        assert read(spark, broker, data).count() == 2 * RECORDS
    names = fetched_by(broker, data, before)
    assert len(names) == 2
    assert all(name.startswith("consumer-spark-kafka-relation-") for name in names)
    assert throttles(broker, before, "Fetch") == {}, "each client has a quota of its own"


def test_with_a_client_id_a_job_has_one_quota_and_reads_everything_under_it(
    spark: SparkSession, broker: SyncBroker, data: str
) -> None:
    before = broker.journal.last_seq
    with broker.quota(client_id="job", fetch=PER_SECOND):
        assert read(spark, broker, data, **{"kafka.client.id": "job"}).count() == 2 * RECORDS
    assert fetched_by(broker, data, before) == {"job"}
    assert throttles(broker, before, "Fetch")["job"] > 0


def test_a_sink_writes_everything_under_a_quota(spark: SparkSession, broker: SyncBroker) -> None:
    broker.cluster.create_topic("throttled-sink", assignments={0: [1]})
    before = broker.journal.last_seq
    rows = spark.range(2 * RECORDS).selectExpr(f"rpad(cast(id as string), {RECORD_BYTES}, ' ') as value")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "kafka.client.id": "writer", "kafka.batch.size": "20000"}
    with broker.quota(client_id="writer", produce=PER_SECOND):
        rows.write.format("kafka").options(**options).option("topic", "throttled-sink").save()
    written = sorted(int(value) for _, value in consume(broker.bootstrap, "throttled-sink", 1))
    assert written == [*range(2 * RECORDS)]
    assert throttles(broker, before, "Produce")["writer"] > 0


def test_a_throttle_longer_than_sparks_patience_fails_the_job_by_name_and_patience_mends_it(
    spark: SparkSession, broker: SyncBroker, data: str
) -> None:
    impatient = {"kafka.client.id": "impatient", "kafkaConsumer.pollTimeoutMs": "300"}
    with (
        broker.quota(client_id="impatient", fetch=PER_SECOND // 8),
        pytest.raises(Py4JJavaError, match=r"Cannot fetch record for offset \d+ in 300 milliseconds"),
    ):
        read(spark, broker, data, **impatient).count()
    patient = {"kafka.client.id": "impatient", "kafkaConsumer.pollTimeoutMs": "60000"}
    with broker.quota(client_id="impatient", fetch=PER_SECOND):
        assert read(spark, broker, data, **patient).count() == 2 * RECORDS
