"""Spark reads from sluice: topics, offsets, splits, and aborted transactions."""

import json
from collections.abc import Mapping

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from sluice import SyncBroker
from tests.spark.kafka_data import in_transaction, produce

EARLY_MS, LATE_MS = 1_700_000_000_000, 1_700_000_600_000


def read(spark: SparkSession, broker: SyncBroker, options: Mapping[str, str]) -> DataFrame:
    """Read all records, or those that the options select."""
    return spark.read.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).options(**options).load()


def values(records: DataFrame) -> list[str]:
    return sorted(row[0] for row in records.select(f.col("value").cast("string")).collect())


@pytest.fixture(scope="module")
def topics(broker: SyncBroker) -> None:
    """`sub-a` and `sub-b` hold the records "a" and "b", `other` holds "c"."""
    for name, value in (("sub-a", "a"), ("sub-b", "b"), ("other", "c")):
        broker.cluster.create_topic(name, 2)
        produce(broker.bootstrap, name, [value], partition=1)


@pytest.fixture(scope="module")
def offsets(broker: SyncBroker) -> None:
    """Partition 0 of `offsets` holds "early" and "late", ten minutes apart; partition 1 holds "other"."""
    broker.cluster.create_topic("offsets", 2)
    for value, timestamp_ms, partition in (("early", EARLY_MS, 0), ("late", LATE_MS, 0), ("other", EARLY_MS, 1)):
        produce(broker.bootstrap, "offsets", [value], partition=partition, timestamp_ms=timestamp_ms)


SUBSCRIPTIONS = {
    "by name": ({"subscribe": "sub-a,other"}, ["a", "c"]),
    "by a pattern": ({"subscribePattern": "sub-.*"}, ["a", "b"]),
    "by partition": ({"assign": '{"sub-a":[0],"sub-b":[0,1]}'}, ["b"]),
}


class TestTopics:
    @pytest.mark.usefixtures("topics")
    @pytest.mark.parametrize(("options", "expected"), SUBSCRIPTIONS.values(), ids=SUBSCRIPTIONS)
    def test_are_found(
        self, options: dict[str, str], expected: list[str], spark: SparkSession, broker: SyncBroker
    ) -> None:
        assert values(read(spark, broker, options)) == expected


BOUNDS = {
    "all": ({"startingOffsets": "earliest", "endingOffsets": "latest"}, ["early", "late", "other"]),
    "by offset; -2 is the start, -1 the end": (
        {"startingOffsets": '{"offsets":{"0":1,"1":-2}}', "endingOffsets": '{"offsets":{"0":-1,"1":0}}'},
        ["late"],
    ),
    "by one timestamp; the end without later records": (
        {"startingTimestamp": str(LATE_MS - 1), "startingOffsetsByTimestampStrategy": "latest"},
        ["late"],
    ),
    "by timestamp per partition": (
        {
            "startingOffsetsByTimestamp": json.dumps({"offsets": {"0": EARLY_MS, "1": EARLY_MS}}),
            "endingOffsetsByTimestamp": json.dumps({"offsets": {"0": LATE_MS, "1": EARLY_MS}}),
        },
        ["early"],
    ),
}


class TestOffsets:
    @pytest.mark.usefixtures("offsets")
    @pytest.mark.parametrize(("options", "expected"), BOUNDS.values(), ids=BOUNDS)
    def test_bound_what_is_read(
        self, options: dict[str, str], expected: list[str], spark: SparkSession, broker: SyncBroker
    ) -> None:
        assert values(read(spark, broker, {"subscribe": "offsets", **options})) == expected


def test_partition_is_split_if_more_splits_are_requested(spark: SparkSession, broker: SyncBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, map(str, range(90)))
    records = read(spark, broker, {"subscribe": topic, "minPartitions": "3"})
    assert records.rdd.getNumPartitions() == 3
    assert records.select("offset").distinct().count() == 90


def test_records_bring_key_time_and_headers(spark: SparkSession, broker: SyncBroker, topic: str) -> None:
    produce(broker.bootstrap, topic, ["v"], timestamp_ms=EARLY_MS, headers=[("h", b"1"), ("h", b"2")])
    (row,) = read(spark, broker, {"subscribe": topic, "includeHeaders": "true"}).collect()
    assert (row.topic, row.partition, row.offset, row.key, bytes(row.value)) == (topic, 0, 0, None, b"v")
    assert (row.timestamp.timestamp() * 1000, row.timestampType) == (EARLY_MS, 0)
    assert [(header.key, bytes(header.value)) for header in row.headers] == [("h", b"1"), ("h", b"2")]


def test_read_committed_excludes_uncommitted_records(spark: SparkSession, broker: SyncBroker, topic: str) -> None:
    in_transaction(broker.bootstrap, topic, ["no", "never"], commits=False)
    in_transaction(broker.bootstrap, topic, ["yes"], commits=True)
    committed = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    assert values(read(spark, broker, committed)) == ["yes"]
    assert values(read(spark, broker, {"subscribe": topic})) == ["never", "no", "yes"]
