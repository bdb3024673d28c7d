"""Real clients consume and produce in transactions exactly once, in order, while coordinators stop, move and start."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Semaphore, Thread
from time import monotonic, sleep
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.broker_process import BrokerProcess, overrides, running_broker

RECORDS = 200
TIMEOUT_S = 120
LONGEST_STEP_S = 1  # after the last record there are no more transactions
NODES = 3
EXPECTED = {index: list(range(index, RECORDS, 2)) for index in (0, 1)}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BrokerProcess]:
    properties = (
        "group.initial.rebalance.delay.ms=0",
        "sluice.election.delay.ms=300",
        "sluice.replication.delay.ms=5",
        "sluice.coordinator.load.delay.ms=100",
        "offsets.topic.num.partitions=3",
        "transaction.state.log.num.partitions=3",
    )
    with running_broker(tmp_path / "log", "--brokers", str(NODES), *overrides(*properties)) as process:
        admin = AdminClient({"bootstrap.servers": bootstrap(process)})
        topics = [NewTopic(name, 2, NODES) for name in ("in", "out")]
        for future in admin.create_topics(topics).values():
            future.result(10)
        producer = Producer({"bootstrap.servers": bootstrap(process)})
        for number in range(RECORDS):
            producer.produce("in", b"%d" % number, partition=number % 2)
        assert producer.flush(20) == 0
        yield process
        assert process.stop()[0] == 0


def bootstrap(cluster: BrokerProcess) -> str:
    return ",".join(cluster.ready["brokers"])


class RollingRestarts:
    """Restarts one broker after the other, only the first with a controlled shutdown; each is a coordinator.

    Each step waits until clients have completed two transactions, the second of which began after the previous step.
    """

    def __init__(self, cluster: BrokerProcess) -> None:
        self._cluster = cluster
        self._thread = Thread(target=self._run)
        self._transactions = Semaphore(0)
        self.done = 0

    def note_transaction(self) -> None:
        """Note a committed transaction; the first one starts the restarts."""
        self._transactions.release()

    def __enter__(self) -> "RollingRestarts":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._transactions.release()
        self._thread.join(TIMEOUT_S)

    def _run(self) -> None:
        self._transactions.acquire()
        for node_id in range(1, NODES + 1):
            self._cluster.post(f"/api/v1/brokers/{node_id}/stop", {"controlled": node_id == 1})
            self._await_transactions()
            self._cluster.post(f"/api/v1/brokers/{node_id}/start")
            self._await_transactions()
            self.done += 1

    def _await_transactions(self) -> None:
        while self._transactions.acquire(blocking=False):
            pass  # completed before this step
        for _ in range(2):
            self._transactions.acquire(timeout=LONGEST_STEP_S)


def consumer_of(cluster: BrokerProcess, topic: str, group: str, settings: Mapping[str, int] | None = None) -> Consumer:
    """Return a member of a group that reads committed records from the beginning."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap(cluster),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            **(settings or {}),
        }
    )
    consumer.subscribe([topic])
    return consumer


def read_out(cluster: BrokerProcess) -> dict[int, list[int]]:
    """Return the committed values of each partition of "out"; wait while some are missing."""
    consumer = consumer_of(cluster, "out", "check")
    found: dict[int, list[int]] = {0: [], 1: []}
    until = monotonic() + TIMEOUT_S / 2
    while monotonic() < until and sum(len(set(one)) for one in found.values()) < RECORDS:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            found[message.partition() or 0].append(int(message.value() or b"-1"))
    for message in consumer.consume(RECORDS, 1):  # any duplicates
        found[message.partition() or 0].append(int(message.value() or b"-1"))
    consumer.close()
    return found


def test_confluent_kafka_loses_and_repeats_nothing(cluster: BrokerProcess) -> None:
    """The consumer commits offsets after the transaction, not with librdkafka's send_offsets_to_transaction.

    With librdkafka 2.16.0 that call may never return, not even after its timeout, if a coordinator stops meanwhile (its
    issues 5511 and 5456), even if the coordinator is back before its failure is detected.
    """
    consumer = consumer_of(cluster, "in", "group", {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500})
    producer = Producer(
        {"bootstrap.servers": bootstrap(cluster), "transactional.id": "tx", "transaction.timeout.ms": 20_000}
    )
    retried(lambda: producer.init_transactions(10))
    taken: set[int] = set()
    until = monotonic() + TIMEOUT_S
    with RollingRestarts(cluster) as restarts:
        while monotonic() < until and (len(taken) < RECORDS or restarts.done < NODES):
            messages = [one for one in consumer.consume(10, 0.3) if not one.error()]
            if not messages:
                continue
            producer.begin_transaction()
            try:
                for message in messages:
                    producer.produce("out", message.value(), partition=message.partition() or 0)
                retried(lambda: producer.commit_transaction(10))
                taken.update(int(message.value() or b"-1") for message in messages)
                restarts.note_transaction()
                commit(consumer)
            except KafkaException as failed:
                if not failed.args[0].txn_requires_abort():
                    raise
                retried(lambda: producer.abort_transaction(10))
                rewind(consumer)
            sleep(0.1)
    assert (len(taken), restarts.done) == (RECORDS, NODES)
    consumer.close()
    found = read_out(cluster)
    assert {index: list(dict.fromkeys(values)) for index, values in found.items()} == EXPECTED


def commit(consumer: Consumer) -> None:
    """Commit the consumed offsets; if that fails, the records are consumed again."""
    with suppress(KafkaException):
        consumer.commit(asynchronous=False)


def rewind(consumer: Consumer) -> None:
    for partition in consumer.committed(consumer.assignment(), 10):
        partition.offset = max(partition.offset, 0)
        consumer.seek(partition)


def retried(action: Any) -> None:
    """Call `action`; retry librdkafka's retriable errors."""
    until = monotonic() + TIMEOUT_S / 2
    while True:
        try:
            action()
            return
        except KafkaException as failed:
            if not failed.args[0].retriable() or monotonic() > until:
                raise
            sleep(0.1)


def test_aiokafka_loses_and_repeats_nothing(cluster: BrokerProcess) -> None:
    asyncio.run(asyncio.wait_for(_aiokafka(cluster), TIMEOUT_S * 1.5))
    assert read_out(cluster) == EXPECTED


async def _aiokafka(cluster: BrokerProcess) -> None:
    consumer = AIOKafkaConsumer(
        "in",
        bootstrap_servers=bootstrap(cluster),
        group_id="group",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap(cluster), transactional_id="tx", transaction_timeout_ms=20_000
    )
    await producer.start()
    await consumer.start()
    taken = 0
    try:
        with RollingRestarts(cluster) as restarts:
            while taken < RECORDS or restarts.done < NODES:
                batches = await consumer.getmany(timeout_ms=300, max_records=10)
                if not batches:
                    continue
                try:
                    async with producer.transaction():
                        for partition, messages in batches.items():
                            for message in messages:
                                await producer.send("out", message.value, partition=partition.partition)
                        offsets = {partition: messages[-1].offset + 1 for partition, messages in batches.items()}
                        await producer.send_offsets_to_transaction(offsets, "group")
                    taken += sum(map(len, batches.values()))
                    restarts.note_transaction()
                except KafkaError:
                    for partition in batches:
                        consumer.seek(partition, await consumer.committed(partition) or 0)
                await asyncio.sleep(0.1)
            assert (taken, restarts.done) == (RECORDS, NODES)
    finally:
        await consumer.stop()
        await producer.stop()
