"""A dead letter that is written outside of the transaction.

The application turns orders into invoices, in transactions that also commit the offset. It sends an order that it
cannot read to a topic of dead letters, with a second producer. If it is killed before the transaction is committed,
its successor reads the same order, and writes the dead letter again. The fixed version writes it in the transaction.
"""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from sluice.client.consumer import Consumer
from sluice.client.consumer import TopicPartition as Partition
from sluice.client.errors import KafkaException
from sluice.client.producer import Producer
from sluice.explore import NoDuplicates, Run

ORDERS = ["pizza", "pizza", "???", "pizza", "?!?", "pizza"]
RESTART_S = 10  # after an error


def invoice_of(order: bytes) -> bytes:
    if b"?" in order:
        raise ValueError(order)
    return b"1 " + order


async def aiokafka_naive(run: Run) -> None:
    orders = TopicPartition("orders", 0)
    dead_letters = AIOKafkaProducer(bootstrap_servers=run.broker.bootstrap, enable_idempotence=True)
    async with aiokafka_producer(run) as producer, aiokafka_consumer(run) as consumer, dead_letters:
        consumer.assign([orders])
        async for order in consumer:
            async with producer.transaction():
                try:
                    await producer.send_and_wait("invoices", invoice_of(order.value))
                except ValueError:
                    await dead_letters.send_and_wait("dead-letters", order.value)
                run.processed(order)
                await producer.send_offsets_to_transaction({orders: order.offset + 1}, "shop")


async def aiokafka_fixed(run: Run) -> None:
    orders = TopicPartition("orders", 0)
    async with aiokafka_producer(run) as producer, aiokafka_consumer(run) as consumer:
        consumer.assign([orders])
        async for order in consumer:
            async with producer.transaction():
                try:
                    await producer.send_and_wait("invoices", invoice_of(order.value))
                except ValueError:
                    await producer.send_and_wait("dead-letters", order.value)
                run.processed(order)
                await producer.send_offsets_to_transaction({orders: order.offset + 1}, "shop")


async def sluice_naive(run: Run) -> None:
    dead_letters = Producer({"bootstrap.servers": run.broker.bootstrap})
    async with sluice_producer(run) as producer, sluice_consumer(run) as consumer, dead_letters:
        await producer.init_transactions()
        consumer.assign([Partition("orders", 0)])
        while True:
            for order in await consumer.poll(1000):
                producer.begin_transaction()
                try:
                    await producer.send("invoices", invoice_of(order.value))
                except ValueError:
                    await (await dead_letters.send("dead-letters", order.value))
                run.processed(order)
                offsets = {Partition("orders", 0): order.offset + 1}
                await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                await producer.commit_transaction()


async def sluice_fixed(run: Run) -> None:
    async with sluice_producer(run) as producer, sluice_consumer(run) as consumer:
        await producer.init_transactions()
        consumer.assign([Partition("orders", 0)])
        while True:
            for order in await consumer.poll(1000):
                producer.begin_transaction()
                try:
                    await producer.send("invoices", invoice_of(order.value))
                except ValueError:
                    await producer.send("dead-letters", order.value)
                run.processed(order)
                offsets = {Partition("orders", 0): order.offset + 1}
                await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                await producer.commit_transaction()


def aiokafka_producer(run: Run) -> AIOKafkaProducer:
    return AIOKafkaProducer(bootstrap_servers=run.broker.bootstrap, client_id="shop", transactional_id="orders-0")


def aiokafka_consumer(run: Run) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=run.broker.bootstrap,
        client_id="shop",
        group_id="shop",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )


def sluice_producer(run: Run) -> Producer:
    return Producer({"bootstrap.servers": run.broker.bootstrap, "client.id": "shop", "transactional.id": "orders-0"})


def sluice_consumer(run: Run) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": run.broker.bootstrap,
            "client.id": "shop",
            "group.id": "shop",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )


async def supervised(application, run: Run) -> None:
    while True:
        try:
            await application(run)
        except (KafkaError, KafkaException):  # such as of a producer that is fenced
            await asyncio.sleep(RESTART_S)


@pytest.mark.kafka_explore(invariants=[NoDuplicates("dead-letters")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_every_order_has_one_dead_letter(kafka_run: Run, application) -> None:
    for topic in ("orders", "invoices", "dead-letters"):
        await kafka_run.broker.cluster.create_topic(topic)
    await kafka_run.broker.client().send("orders", *ORDERS)
    kafka_run.start(lambda: supervised(application, kafka_run))
    await kafka_run.wait_for(lambda: ("orders", 0, len(ORDERS) - 1) in kafka_run.processed_records, within_s=300)
