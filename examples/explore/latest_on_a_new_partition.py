"""Start at the end of a new partition.

The application reads with `auto.offset.reset=latest`, because it must not repeat old orders. When it finds a new
partition, or restarts before its first commit to it, it starts at the end, and the orders that were written before
are lost. The fixed version starts at the beginning of a partition without a committed offset.
"""

import asyncio
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from sluice.client.admin import AdminClient
from sluice.client.consumer import Consumer
from sluice.client.errors import KafkaException
from sluice.explore import AtLeastOnce, Run

ORDERS = 8
REFRESH_S = 1  # of metadata: consumers notice a new partition


async def aiokafka_naive(run: Run) -> None:
    await aiokafka_application(run, auto_offset_reset="latest")


async def aiokafka_fixed(run: Run) -> None:
    await aiokafka_application(run, auto_offset_reset="earliest")


async def aiokafka_application(run: Run, auto_offset_reset: str) -> None:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=run.broker.bootstrap,
        client_id="shop",
        group_id="shop",
        auto_offset_reset=auto_offset_reset,
        enable_auto_commit=False,
        metadata_max_age_ms=REFRESH_S * 1000,
    )
    async with consumer:
        async for order in consumer:
            run.processed(order)
            with suppress(KafkaError):
                await consumer.commit()


async def sluice_naive(run: Run) -> None:
    await sluice_application(run, auto_offset_reset="latest")


async def sluice_fixed(run: Run) -> None:
    await sluice_application(run, auto_offset_reset="earliest")


async def sluice_application(run: Run, auto_offset_reset: str) -> None:
    config = {
        "bootstrap.servers": run.broker.bootstrap,
        "client.id": "shop",
        "group.id": "shop",
        "auto.offset.reset": auto_offset_reset,
        "enable.auto.commit": False,
        "metadata.max.age.ms": REFRESH_S * 1000,
    }
    async with Consumer(config) as consumer:
        consumer.subscribe(["orders"])
        while True:
            for order in await consumer.poll(1000):
                run.processed(order)
            with suppress(KafkaException):
                await consumer.commit()


@pytest.mark.kafka_explore(invariants=[AtLeastOnce("orders")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_every_order_of_a_new_partition_is_processed(kafka_run: Run, application) -> None:
    await kafka_run.broker.cluster.create_topic("orders")
    kafka_run.start(lambda: application(kafka_run))
    await asyncio.sleep(5)
    async with AdminClient({"bootstrap.servers": kafka_run.broker.bootstrap}) as admin:
        await admin.create_partitions({"orders": 2})
    await asyncio.sleep(5)  # until the application has noticed it
    for number in range(ORDERS):
        await kafka_run.broker.client().send("orders", str(number), partition=1, timeout_s=120)
        await asyncio.sleep(0.5)
    await kafka_run.wait_for(lambda: ("orders", 1, ORDERS - 1) in kafka_run.processed_records, within_s=300)
