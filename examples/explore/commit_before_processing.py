"""Commit before processing.

The application commits the offset of an order, and processes it afterwards. If it is killed in between, its successor
starts after the order, and no instance ever processes it. The fixed version commits after the processing: an order
can then be processed twice, but is never lost.
"""

import asyncio
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from sluice.client.consumer import Consumer
from sluice.client.errors import KafkaException
from sluice.explore import AtLeastOnce, Run

ORDERS = 8
WORK_S = 0.01  # to process an order


async def aiokafka_naive(run: Run) -> None:
    async with aiokafka_consumer(run) as consumer:
        async for order in consumer:
            with suppress(KafkaError):  # after a rebalance, the next owner of the partition commits
                await consumer.commit()
            await asyncio.sleep(WORK_S)
            run.processed(order)


async def aiokafka_fixed(run: Run) -> None:
    async with aiokafka_consumer(run) as consumer:
        async for order in consumer:
            await asyncio.sleep(WORK_S)
            run.processed(order)
            with suppress(KafkaError):
                await consumer.commit()


async def sluice_naive(run: Run) -> None:
    async with sluice_consumer(run) as consumer:
        consumer.subscribe(["orders"])
        while True:
            orders = await consumer.poll(1000)
            with suppress(KafkaException):
                await consumer.commit()
            for order in orders:
                await asyncio.sleep(WORK_S)
                run.processed(order)


async def sluice_fixed(run: Run) -> None:
    async with sluice_consumer(run) as consumer:
        consumer.subscribe(["orders"])
        while True:
            for order in await consumer.poll(1000):
                await asyncio.sleep(WORK_S)
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


@pytest.mark.kafka_explore(invariants=[AtLeastOnce("orders")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_every_order_is_processed(kafka_run: Run, application) -> None:
    await kafka_run.broker.cluster.create_topic("orders")
    await kafka_run.broker.client().send("orders", *map(str, range(ORDERS)))
    kafka_run.start(lambda: application(kafka_run))
    await kafka_run.wait_for(lambda: ("orders", 0, ORDERS - 1) in kafka_run.processed_records, within_s=300)
