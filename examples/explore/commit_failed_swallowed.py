"""A failed commit that is ignored.

The application charges a customer at most once: it commits an order, and charges for it afterwards. It only logs a
failed commit, as after a rebalance. The next owner of the partition then starts at the same order, and charges again.
The fixed version charges only after a commit that has succeeded.
"""

import asyncio
import logging

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from sluice.client.consumer import Consumer
from sluice.client.errors import KafkaException
from sluice.explore import AtMostOnce, Run

ORDERS = 8
WORK_S = 0.01  # to charge for an order


async def aiokafka_naive(run: Run) -> None:
    async with aiokafka_consumer(run) as consumer:
        async for order in consumer:
            try:
                await consumer.commit()
            except KafkaError as error:
                logging.warning("commit failed: %s", error)
            await asyncio.sleep(WORK_S)
            run.processed(order)


async def aiokafka_fixed(run: Run) -> None:
    async with aiokafka_consumer(run) as consumer:
        async for order in consumer:
            try:
                await consumer.commit()
            except KafkaError as error:
                logging.warning("commit failed, so the next owner of the partition charges: %s", error)
                continue
            await asyncio.sleep(WORK_S)
            run.processed(order)


async def sluice_naive(run: Run) -> None:
    async with sluice_consumer(run) as consumer:
        consumer.subscribe(["orders"])
        while True:
            orders = await consumer.poll(1000)
            try:
                await consumer.commit()
            except KafkaException as error:
                logging.warning("commit failed: %s", error)
            for order in orders:
                await asyncio.sleep(WORK_S)
                run.processed(order)


async def sluice_fixed(run: Run) -> None:
    async with sluice_consumer(run) as consumer:
        consumer.subscribe(["orders"])
        while True:
            orders = await consumer.poll(1000)
            try:
                await consumer.commit()
            except KafkaException as error:
                logging.warning("commit failed, so the next owner of the partition charges: %s", error)
                continue
            for order in orders:
                await asyncio.sleep(WORK_S)
                run.processed(order)


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


def committed(run: Run) -> int:
    """Return the highest offset in a commit that succeeded."""
    commits = [each for each in run.broker.journal.requests(api="OffsetCommit") if not each.error_codes]
    return max((commit.partitions[0].offset for commit in commits), default=0)


@pytest.mark.kafka_explore(invariants=[AtMostOnce("orders")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_no_customer_is_charged_twice(kafka_run: Run, application) -> None:
    await kafka_run.broker.cluster.create_topic("orders")
    await kafka_run.broker.client().send("orders", *map(str, range(ORDERS)))
    kafka_run.start(lambda: application(kafka_run))
    await kafka_run.wait_for(lambda: committed(kafka_run) == ORDERS, within_s=300)
    await asyncio.sleep(1)
