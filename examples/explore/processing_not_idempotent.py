"""Processing that is not idempotent across a rebalance.

The application books an order, and commits its offset afterwards. If it loses the partition or is killed in between,
the next owner of the partition books the order again. The fixed version writes the place of the order into the same
database, in the transaction that books it, and skips an order whose place is already there.
"""

import asyncio
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from sluice.client.consumer import Consumer
from sluice.client.errors import KafkaException
from sluice.explore import ExactlyOnce, Run

ORDERS = 8
WORK_S = 0.01  # to process an order


async def aiokafka_naive(run: Run) -> None:
    async with aiokafka_consumer(run) as consumer:
        async for order in consumer:
            await asyncio.sleep(WORK_S)
            run.processed(order)
            with suppress(KafkaError):  # after a rebalance, the next owner of the partition commits
                await consumer.commit()


async def aiokafka_fixed(run: Run) -> None:
    booked = run.processed_records  # a table of the database, which outlives the application
    async with aiokafka_consumer(run) as consumer:
        async for order in consumer:
            await asyncio.sleep(WORK_S)
            if (order.topic, order.partition, order.offset) not in booked:
                run.processed(order)
            with suppress(KafkaError):
                await consumer.commit()


async def sluice_naive(run: Run) -> None:
    async with sluice_consumer(run) as consumer:
        consumer.subscribe(["orders"])
        while True:
            for order in await consumer.poll(1000):
                await asyncio.sleep(WORK_S)
                run.processed(order)
            with suppress(KafkaException):
                await consumer.commit()


async def sluice_fixed(run: Run) -> None:
    booked = run.processed_records  # a table of the database, which outlives the application
    async with sluice_consumer(run) as consumer:
        consumer.subscribe(["orders"])
        while True:
            for order in await consumer.poll(1000):
                await asyncio.sleep(WORK_S)
                if (order.topic, order.partition, order.offset) not in booked:
                    run.processed(order)
            with suppress(KafkaException):
                await consumer.commit()


def aiokafka_consumer(run: Run) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        "orders",
        bootstrap_servers=run.broker.bootstrap,
        client_id="shop",
        group_id="shop",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )


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


@pytest.mark.kafka_explore(invariants=[ExactlyOnce("orders")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_every_order_is_booked_once(kafka_run: Run, application) -> None:
    await kafka_run.broker.cluster.create_topic("orders")
    await kafka_run.broker.client().send("orders", *map(str, range(ORDERS)))
    kafka_run.start(lambda: application(kafka_run))
    await kafka_run.wait_for(lambda: ("orders", 0, ORDERS - 1) in kafka_run.processed_records, within_s=300)
