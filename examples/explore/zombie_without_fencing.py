"""A zombie that is not fenced.

One instance of the application turns orders into invoices, each in a transaction that also commits the offset. If the
instance is slow, its supervisor starts another one, and both are alive for a while. The `transactional.id` of each is
the name of its pod, so the first instance, a zombie, can still commit, and an order has two invoices. In the fixed
version, the id stands for the work: when the second instance initializes it, the broker fences the first one.
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

ORDERS = 8
WORK_S = 0.01  # to write an invoice
RESTART_S = 10  # after an error


async def aiokafka_naive(run: Run) -> None:
    pod = asyncio.current_task().get_name()
    await aiokafka_invoices(run, f"invoices-{pod}")


async def aiokafka_fixed(run: Run) -> None:
    await aiokafka_invoices(run, "invoices-orders-0")


async def aiokafka_invoices(run: Run, transactional_id: str) -> None:
    orders = TopicPartition("orders", 0)
    producer = AIOKafkaProducer(
        bootstrap_servers=run.broker.bootstrap, client_id="shop", transactional_id=transactional_id
    )
    consumer = AIOKafkaConsumer(
        bootstrap_servers=run.broker.bootstrap,
        client_id="shop",
        group_id="shop",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with producer, consumer:  # the producer first: it aborts the transaction of a former instance
        consumer.assign([orders])
        async for order in consumer:
            async with producer.transaction():
                await asyncio.sleep(WORK_S)
                await producer.send_and_wait("invoices", order.value)
                run.processed(order)
                await producer.send_offsets_to_transaction({orders: order.offset + 1}, "shop")


async def sluice_naive(run: Run) -> None:
    pod = asyncio.current_task().get_name()
    await sluice_invoices(run, f"invoices-{pod}")


async def sluice_fixed(run: Run) -> None:
    await sluice_invoices(run, "invoices-orders-0")


async def sluice_invoices(run: Run, transactional_id: str) -> None:
    orders = Partition("orders", 0)
    common = {"bootstrap.servers": run.broker.bootstrap, "client.id": "shop"}
    producer = Producer({**common, "transactional.id": transactional_id})
    consumer = Consumer(
        {
            **common,
            "group.id": "shop",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "max.poll.records": 1,
        }
    )
    async with producer, consumer:
        await producer.init_transactions()  # aborts the transaction of a former instance
        consumer.assign([orders])
        while True:
            for order in await consumer.poll(1000):
                producer.begin_transaction()
                await asyncio.sleep(WORK_S)
                await producer.send("invoices", order.value)
                run.processed(order)
                await producer.send_offsets_to_transaction({orders: order.offset + 1}, consumer.group_metadata())
                await producer.commit_transaction()


async def supervised(application, run: Run) -> None:
    while True:
        try:
            await application(run)
        except (KafkaError, KafkaException):  # such as of a producer that is fenced
            await asyncio.sleep(RESTART_S)


@pytest.mark.kafka_explore(invariants=[NoDuplicates("invoices")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_every_order_has_one_invoice(kafka_run: Run, application) -> None:
    await kafka_run.broker.cluster.create_topic("orders")
    await kafka_run.broker.cluster.create_topic("invoices")
    await kafka_run.broker.client().send("orders", *map(str, range(ORDERS)))
    kafka_run.start(lambda: supervised(application, kafka_run))
    await kafka_run.wait_for(lambda: ("orders", 0, ORDERS - 1) in kafka_run.processed_records, within_s=300)
