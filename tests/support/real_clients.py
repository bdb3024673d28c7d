"""The three Python clients, each behind the same few functions: produce rows, read them back."""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import NamedTuple

import kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import codec

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
# Far longer than any of this takes on a busy machine.
TIMEOUT_S = 30


class Row(NamedTuple):
    """One record, as each client gives it back."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int  # ms


class RealClient(NamedTuple):
    """One client library. `produce(bootstrap, topic, compression, rows, idempotent)`, `consume(bootstrap, topic, n)`;
    `missing(compression)` is why it cannot do that compression here, None if it can.
    """

    name: str
    produce: Callable[[str, str, str, Sequence[Row], bool], None]
    consume: Callable[[str, str, int], list[Row]]
    missing: Callable[[str], str | None]


# -- aiokafka ----------------------------------------------------------------------------------------------------------


def _aiokafka_produce(bootstrap: str, topic: str, compression: str, rows: Sequence[Row], idempotent: bool) -> None:
    async def main() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if compression == "none" else compression,
            enable_idempotence=idempotent,
        )
        async with producer:
            sent = [
                await producer.send(
                    topic, row.value, row.key, partition=0, timestamp_ms=row.timestamp, headers=list(row.headers)
                )
                for row in rows
            ]
            await asyncio.gather(*sent)

    asyncio.run(asyncio.wait_for(main(), TIMEOUT_S))


def _aiokafka_consume(bootstrap: str, topic: str, count: int) -> list[Row]:
    async def main() -> list[Row]:
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            records = [await consumer.getone() for _ in range(count)]
        return [Row(one.key, one.value, tuple(one.headers), one.timestamp) for one in records]

    return asyncio.run(asyncio.wait_for(main(), TIMEOUT_S))


# -- kafka-python ------------------------------------------------------------------------------------------------------


def _kafka_python_produce(bootstrap: str, topic: str, compression: str, rows: Sequence[Row], idempotent: bool) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if compression == "none" else compression,
        enable_idempotence=idempotent,
    )
    try:
        sent = [
            producer.send(topic, row.value, row.key, list(row.headers), partition=0, timestamp_ms=row.timestamp)
            for row in rows
        ]
        for future in sent:
            future.get(timeout=TIMEOUT_S)
    finally:
        producer.close(timeout=TIMEOUT_S)


def _kafka_python_consume(bootstrap: str, topic: str, count: int) -> list[Row]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, consumer_timeout_ms=TIMEOUT_S * 1000)
    try:
        partition = kafka.TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        records = [next(consumer) for _ in range(count)]
    finally:
        consumer.close()
    return [Row(one.key, one.value, tuple(one.headers), one.timestamp) for one in records]


def _kafka_python_missing(compression: str) -> str | None:
    packages = {
        "snappy": (codec.has_snappy, "python-snappy"),
        "lz4": (codec.has_lz4, "lz4"),
        "zstd": (codec.has_zstd, "zstandard"),
    }
    if compression in packages and not packages[compression][0]():
        return f"kafka-python needs the package {packages[compression][1]} for {compression}"
    return None


# -- confluent-kafka ---------------------------------------------------------------------------------------------------


def _confluent_produce(bootstrap: str, topic: str, compression: str, rows: Sequence[Row], idempotent: bool) -> None:
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": compression,
            "enable.idempotence": idempotent,
            "linger.ms": 5,
        }
    )
    for row in rows:
        producer.produce(
            topic,
            row.value,
            row.key,
            0,
            on_delivery=delivered,
            timestamp=row.timestamp,
            headers=list(row.headers),
        )
    left = producer.flush(TIMEOUT_S)
    assert (left, failed) == (0, [])


def _confluent_consume(bootstrap: str, topic: str, count: int) -> list[Row]:
    # A group id is wanted by the library; partitions that are assigned by hand need no group.
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False})
    try:
        consumer.assign([ConfluentPartition(topic, 0, 0)])
        rows: list[Row] = []
        deadline = monotonic() + TIMEOUT_S
        while len(rows) < count:
            assert monotonic() < deadline, f"{len(rows)} of {count} records"
            message = consumer.poll(1)
            if message is None:
                continue
            assert message.error() is None, message.error()
            rows.append(Row(message.key(), message.value(), _headers(message), message.timestamp()[1]))
    finally:
        consumer.close()
    return rows


def _headers(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers() or []
    assert isinstance(headers, list), "one that was received has no dict"
    found = []
    for name, value in headers:
        assert not isinstance(value, str)
        found.append((name, value))
    return tuple(found)


def _nothing_missing(compression: str) -> None:
    return None


CLIENTS = (
    RealClient("aiokafka", _aiokafka_produce, _aiokafka_consume, _nothing_missing),
    RealClient("kafka-python", _kafka_python_produce, _kafka_python_consume, _kafka_python_missing),
    RealClient("confluent-kafka", _confluent_produce, _confluent_consume, _nothing_missing),
)
