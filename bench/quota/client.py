"""A client of one library that exceeds its quota until it is killed.

`python -m bench.quota.client LIBRARY produce|fetch HOST:PORT CLIENT-ID TOPIC`. The broker records the charges. Requests
have about a twentieth of a second's quota. kafka-python pauses on its side with request versions since KIP-219;
`kafka-python-old` uses older versions.
"""

import asyncio
import sys
from collections.abc import Callable
from functools import partial

QUOTA = 1_000_000  # bytes/s
RECORD = bytes(QUOTA // 20)
_BEFORE_KIP_219 = (1, 1)


async def _aiokafka_produces(bootstrap: str, client_id: str, topic: str) -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id=client_id)
    await producer.start()
    while True:
        await producer.send_and_wait(topic, RECORD, partition=0)


async def _aiokafka_fetches(bootstrap: str, client_id: str, topic: str) -> None:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, client_id=client_id, auto_offset_reset="earliest", max_partition_fetch_bytes=1
    )
    await consumer.start()
    consumer.assign([TopicPartition(topic, 0)])
    while True:
        await consumer.getone()


def _kafka_python_produces(
    bootstrap: str, client_id: str, topic: str, api_version: tuple[int, ...] | None = None
) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=client_id, api_version=api_version)
    while True:
        producer.send(topic, RECORD, partition=0).get(timeout=60)


def _kafka_python_fetches(
    bootstrap: str, client_id: str, topic: str, api_version: tuple[int, ...] | None = None
) -> None:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=client_id,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=1,
        api_version=api_version,
    )
    consumer.assign([TopicPartition(topic, 0)])
    for _ in consumer:
        pass


def _confluent_produces(bootstrap: str, client_id: str, topic: str) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "client.id": client_id, "linger.ms": 0})
    while True:
        producer.produce(topic, RECORD, partition=0)
        producer.flush()


def _confluent_fetches(bootstrap: str, client_id: str, topic: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": client_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": len(RECORD),
            "fetch.error.backoff.ms": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    while True:
        consumer.poll(1.0)


LIBRARIES: dict[str, tuple[Callable[[str, str, str], object], Callable[[str, str, str], object]]] = {
    "aiokafka": (_aiokafka_produces, _aiokafka_fetches),
    "kafka-python": (_kafka_python_produces, _kafka_python_fetches),
    "kafka-python-old": (
        partial(_kafka_python_produces, api_version=_BEFORE_KIP_219),
        partial(_kafka_python_fetches, api_version=_BEFORE_KIP_219),
    ),
    "confluent-kafka": (_confluent_produces, _confluent_fetches),
}


def main(library: str, kind: str, bootstrap: str, client_id: str, topic: str) -> None:
    """Run until killed."""
    run = LIBRARIES[library][kind == "fetch"](bootstrap, client_id, topic)
    if asyncio.iscoroutine(run):
        asyncio.run(run)


if __name__ == "__main__":
    main(*sys.argv[1:])
