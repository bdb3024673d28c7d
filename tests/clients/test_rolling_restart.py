"""A rolling restart of three brokers, with an idempotent producer and a consumer group of each Python client.

At the end, every record is in the log once, each partition is in order, and the group has read all records.
"""

import asyncio
import gc
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Protocol

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import CommitFailedError
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka.producer.future import FutureRecordMetadata

from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.wire import WireClient, error_codes

PARTITIONS = 3
PATIENCE_S = 240  # prevents a hang if a client or broker fails
PROPERTIES = overrides("sluice.election.delay.ms=300", "group.initial.rebalance.delay.ms=0")


class Client(Protocol):
    def produce(self, bootstrap: str, stop: threading.Event) -> list[int]:
        """Write the number n to partition n % 3 of `t` until `stop` is set; return the acknowledged numbers."""

    def consume(self, bootstrap: str, started: threading.Event, read: list[int], finished: threading.Event) -> None:
        """Read `t` in group `g` into `read` until `finished` is set; set `started` after the first record."""


class Aiokafka:
    def produce(self, bootstrap: str, stop: threading.Event) -> list[int]:
        return asyncio.run(self._produce(bootstrap, stop))

    async def _produce(self, bootstrap: str, stop: threading.Event) -> list[int]:
        sent: list[asyncio.Future[object]] = []
        async with AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True, linger_ms=1, retry_backoff_ms=20
        ) as producer:
            while not stop.is_set():
                number = len(sent)
                sent.append(await producer.send("t", b"%d" % number, partition=number % PARTITIONS))
                await asyncio.sleep(0.003)
            await asyncio.wait_for(asyncio.gather(*sent), PATIENCE_S)
        return list(range(len(sent)))

    def consume(self, bootstrap: str, started: threading.Event, read: list[int], finished: threading.Event) -> None:
        asyncio.run(self._consume(bootstrap, started, read, finished))

    async def _consume(
        self, bootstrap: str, started: threading.Event, read: list[int], finished: threading.Event
    ) -> None:
        async with AIOKafkaConsumer(
            "t", bootstrap_servers=bootstrap, group_id="g", auto_offset_reset="earliest", retry_backoff_ms=20
        ) as consumer:
            while not finished.is_set():
                for records in (await consumer.getmany(timeout_ms=100)).values():
                    read += [int(record.value or b"") for record in records]
                    started.set()
            # Closing retries its commit without finding the coordinator, so it must have one before.
            with suppress(CommitFailedError):
                await consumer.commit()


class Confluent:
    def produce(self, bootstrap: str, stop: threading.Event) -> list[int]:
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1})
        acknowledged: list[int] = []

        def noted(number: int, error: KafkaError | None) -> None:
            if error is None:
                acknowledged.append(number)

        number = 0
        while not stop.wait(0.002):
            callback = lambda error, _, number=number: noted(number, error)  # noqa: E731
            producer.produce("t", b"%d" % number, partition=number % PARTITIONS, callback=callback)
            producer.poll(0)
            number += 1
        assert producer.flush(PATIENCE_S) == 0
        assert len(acknowledged) == number, "some records were rejected"
        return acknowledged

    def consume(self, bootstrap: str, started: threading.Event, read: list[int], finished: threading.Event) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
        consumer = Consumer(settings)
        consumer.subscribe(["t"])
        while not finished.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                read.append(int(message.value() or b""))
                started.set()
        consumer.close()


class KafkaPython:
    def produce(self, bootstrap: str, stop: threading.Event) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap.split(","), enable_idempotence=True, linger_ms=1, retry_backoff_ms=20
        )
        sent: list[FutureRecordMetadata] = []
        while not stop.wait(0.005):
            number = len(sent)
            sent.append(producer.send("t", b"%d" % number, partition=number % PARTITIONS))
        producer.flush(timeout=PATIENCE_S)
        for future in sent:
            future.get(timeout=PATIENCE_S)
        producer.close()
        return list(range(len(sent)))

    def consume(self, bootstrap: str, started: threading.Event, read: list[int], finished: threading.Event) -> None:
        consumer = KafkaConsumer(
            "t", bootstrap_servers=bootstrap.split(","), group_id="g", auto_offset_reset="earliest", retry_backoff_ms=20
        )
        while not finished.is_set():
            # Long finished for a rebalance on a busy machine: a poll that ends during one can lose the assignment.
            for records in consumer.poll(timeout_ms=2000).values():
                read += [int(record.value) for record in records]
                started.set()
        consumer.close()


CLIENTS: list[Client] = [Aiokafka(), Confluent(), KafkaPython()]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path / "log", "--brokers", "3", *PROPERTIES) as broker:
        topic = CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=3)
        with WireClient(broker.bootstrap) as client:
            assert error_codes(client.call(CreateTopicsRequest(topics=[topic]), 5)) == []
        yield broker


def in_sync(cluster: BrokerProcess) -> bool:
    topics = json.loads(cluster.get("/api/v1/cluster"))["topics"]
    return all(len(partition["isr"]) == 3 for topic in topics for partition in topic["partitions"])


def in_log(bootstrap: str) -> list[list[int]]:
    """Return the numbers in each partition, in order."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "all", "enable.auto.commit": False})
    found = []
    for index in range(PARTITIONS):
        _, end = consumer.get_watermark_offsets(TopicPartition("t", index), timeout=PATIENCE_S)
        consumer.assign([TopicPartition("t", index, 0)])
        numbers: list[int] = []
        while len(numbers) < end:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.error() is None
            numbers.append(int(message.value() or b""))
        found.append(numbers)
    consumer.close()
    return found


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: type(client).__name__)
def test_rolling_restart_loses_and_repeats_nothing(client: Client, cluster: BrokerProcess) -> None:
    brokers = json.loads(cluster.first_line.removeprefix("ready "))["brokers"]
    bootstrap = ",".join(brokers)
    stop, finished = threading.Event(), threading.Event()
    sockets = {id(thing) for thing in gc.get_objects() if type(thing) is socket.socket}
    reads: list[list[int]] = [[], []]
    started = [threading.Event() for _ in reads]
    acknowledged: list[int] = []
    producing = threading.Thread(target=lambda: acknowledged.extend(client.produce(bootstrap, stop)), daemon=True)
    consuming = [
        threading.Thread(target=client.consume, args=(bootstrap, event, read, finished), daemon=True)
        for event, read in zip(started, reads, strict=True)
    ]
    for thread in (producing, *consuming):
        thread.start()
    try:
        for event in started:
            assert event.wait(PATIENCE_S), "a member of the group reads no record"
        for node_id in (1, 2, 3):
            before = sum(map(len, reads))
            cluster.post(f"/api/v1/brokers/{node_id}/stop")
            await_more(reads, before)
            cluster.post(f"/api/v1/brokers/{node_id}/start")
            assert in_sync(cluster)
        stop.set()
        producing.join(PATIENCE_S)
        await_all(reads, acknowledged)
    finally:
        stop.set()
        finished.set()
        for thread in (producing, *consuming):
            thread.join(PATIENCE_S / 2)
        close_forgotten_sockets(sockets)
    assert not any(thread.is_alive() for thread in (producing, *consuming)), "a client does not stop"
    numbers = in_log(bootstrap)
    assert acknowledged, "no record was acknowledged"
    assert sorted(number for partition in numbers for number in partition) == sorted(acknowledged)
    assert all(partition == sorted(partition) for partition in numbers), "out of order"


def close_forgotten_sockets(before: set[int]) -> None:
    """Close sockets to stopped brokers that kafka-python leaves to the garbage collector, which warns about them."""
    for thing in gc.get_objects():
        if type(thing) is socket.socket and id(thing) not in before:
            thing.close()


def await_more(reads: list[list[int]], before: int) -> None:
    """Wait until the group has read more records."""
    deadline = monotonic() + PATIENCE_S
    pause = threading.Event()
    while sum(map(len, reads)) <= before:
        assert monotonic() < deadline, "the group reads no more records"
        pause.wait(0.02)


def await_all(reads: list[list[int]], acknowledged: list[int]) -> None:
    """Wait until the group has read all acknowledged records."""
    deadline = monotonic() + PATIENCE_S
    pause = threading.Event()
    while not set(acknowledged) <= {number for read in reads for number in read}:
        missing = len(set(acknowledged) - {number for read in reads for number in read})
        assert monotonic() < deadline, f"the group has not read {missing} of {len(acknowledged)} records"
        pause.wait(0.05)
