"""A buffer that is lost at a shutdown.

The application collects orders in memory, and writes five of them, or what there is after a second, to a database.
Offsets are committed automatically, also when the consumer is closed, as at each restart: the orders in the buffer
are then committed, but never written. The fixed version commits after it has written, and writes the buffer before it
ends.
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
BUFFER = 5
PAUSE_S = 0.1  # between orders


def write(run: Run, buffer: list) -> None:
    for order in buffer:
        run.processed(order)
    buffer.clear()


async def aiokafka_naive(run: Run) -> None:
    buffer = []
    async with aiokafka_consumer(run, enable_auto_commit=True) as consumer:
        while True:
            batches = await consumer.getmany(timeout_ms=1000)
            for orders in batches.values():
                buffer += orders
            if len(buffer) >= BUFFER or not batches:
                write(run, buffer)


async def aiokafka_fixed(run: Run) -> None:
    buffer = []
    async with aiokafka_consumer(run, enable_auto_commit=False) as consumer:
        try:
            while True:
                batches = await consumer.getmany(timeout_ms=1000)
                for orders in batches.values():
                    buffer += orders
                if len(buffer) >= BUFFER or not batches:
                    write(run, buffer)
                    with suppress(KafkaError):  # after a rebalance
                        await consumer.commit()
        finally:
            write(run, buffer)
            with suppress(KafkaError):
                await consumer.commit()


async def sluice_naive(run: Run) -> None:
    buffer = []
    async with sluice_consumer(run, enable_auto_commit=True) as consumer:
        consumer.subscribe(["orders"])
        while True:
            orders = await consumer.poll(1000)
            buffer += orders
            if len(buffer) >= BUFFER or not orders:
                write(run, buffer)


async def sluice_fixed(run: Run) -> None:
    buffer = []
    async with sluice_consumer(run, enable_auto_commit=False) as consumer:
        consumer.subscribe(["orders"])
        try:
            while True:
                orders = await consumer.poll(1000)
                buffer += orders
                if len(buffer) >= BUFFER or not orders:
                    write(run, buffer)
                    with suppress(KafkaException):  # after a rebalance
                        await consumer.commit()
        finally:
            write(run, buffer)
            with suppress(KafkaException):
                await consumer.commit()


def aiokafka_consumer(run: Run, enable_auto_commit: bool) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        "orders",
        bootstrap_servers=run.broker.bootstrap,
        client_id="shop",
        group_id="shop",
        auto_offset_reset="earliest",
        enable_auto_commit=enable_auto_commit,
    )


def sluice_consumer(run: Run, enable_auto_commit: bool) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": run.broker.bootstrap,
            "client.id": "shop",
            "group.id": "shop",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": enable_auto_commit,
        }
    )


@pytest.mark.kafka_explore(invariants=[AtLeastOnce("orders")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_every_order_is_written(kafka_run: Run, application) -> None:
    await kafka_run.broker.cluster.create_topic("orders")
    kafka_run.start(lambda: application(kafka_run))
    for number in range(ORDERS):
        await kafka_run.broker.client().send("orders", str(number), timeout_s=120)
        await asyncio.sleep(PAUSE_S)
    await kafka_run.wait_for(lambda: ("orders", 0, ORDERS - 1) in kafka_run.processed_records, within_s=300)
