"""Real clients read a table from a compacted topic: each key once, with its last value.

The table is written in transactions, every third of which is aborted. The last transaction has only the key that ends
the table, in a segment that is not compacted yet.
"""

import asyncio
from collections.abc import Callable, Iterator
from time import monotonic

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer

from tests.support.broker_process import overrides, running_broker

Row = tuple[bytes | None, bytes | None]

KEYS = 50
ROUNDS = 20
END = b"end"
LAST_COMMITTED = max(number for number in range(ROUNDS) if number % 3)
TABLE: set[Row] = {(b"key-%d" % key, b"value-%d" % LAST_COMMITTED) for key in range(KEYS)}
COMPACTED_WITHIN_S = 120
OVERRIDES = overrides("log.cleaner.backoff.ms=50", "log.cleaner.min.cleanable.ratio=0")


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_broker(tmp_path_factory.mktemp("compaction") / "broker.log", *OVERRIDES) as broker:
        write_table(broker.bootstrap)
        end = monotonic() + COMPACTED_WITHIN_S
        while len(read_confluent(broker.bootstrap)) > KEYS:
            assert monotonic() < end, "the log is not compacted"
        yield broker.bootstrap


def write_table(bootstrap: str) -> None:
    configs = {"cleanup.policy": "compact", "segment.ms": "1"}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("table", 1, 1, config=configs)])["table"].result(10)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": "writer", "compression.type": "lz4", "linger.ms": 0}
    )
    producer.init_transactions(10)
    for number in range(ROUNDS):
        producer.begin_transaction()
        for key in range(KEYS):
            producer.produce("table", key=f"key-{key}", value=f"value-{number}")
        if number % 3:
            producer.commit_transaction(10)
        else:
            producer.abort_transaction(10)
    producer.begin_transaction()
    producer.produce("table", key=END)
    producer.commit_transaction(10)


def read_confluent(bootstrap: str) -> list[Row]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition("table", 0, 0)])
    rows: list[Row] = []
    try:
        while True:
            message = consumer.poll(10)
            assert message is not None, f"the table has no end after {len(rows)} rows"
            assert message.error() is None
            if message.key() == END:
                return rows
            rows.append((message.key(), message.value()))
    finally:
        consumer.close()


def read_kafka_python(bootstrap: str) -> list[Row]:
    with KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    ) as consumer:
        from kafka import TopicPartition as Place

        consumer.assign([Place("table", 0)])
        consumer.seek_to_beginning()
        rows: list[Row] = []
        for record in consumer:
            if record.key == END:
                return rows
            rows.append((record.key, record.value))
    raise AssertionError(f"the table has no end after {len(rows)} rows")


def read_aiokafka(bootstrap: str) -> list[Row]:
    async def read() -> list[Row]:
        rows: list[Row] = []
        async with AIOKafkaConsumer(
            "table", bootstrap_servers=bootstrap, isolation_level="read_committed", auto_offset_reset="earliest"
        ) as consumer:
            async with asyncio.timeout(10):
                async for record in consumer:
                    if record.key == END:
                        break
                    rows.append((record.key, record.value))
        return rows

    return asyncio.run(read())


READERS = {"confluent-kafka": read_confluent, "kafka-python": read_kafka_python, "aiokafka": read_aiokafka}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_compacted_table_is_read_with(read: Callable[[str], list[Row]], bootstrap: str) -> None:
    rows = read(bootstrap)
    assert len(rows) == KEYS
    assert set(rows) == TABLE
