"""Read uncommitted records.

An importer writes the orders of a customer in one transaction. The application reads with the default isolation
level, `read_uncommitted`, so it also processes orders of transactions that are aborted later, such as by a restart of
the importer. The fixed version sets `read_committed`.
"""

import asyncio
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from sluice.client.consumer import Consumer
from sluice.explore import NoAbortedRecords, Run

CUSTOMERS = 4


async def aiokafka_naive(run: Run) -> None:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=run.broker.bootstrap,
        client_id="shop",
        group_id="shop",
        auto_offset_reset="earliest",
    )
    async with consumer:
        async for order in consumer:
            run.processed(order)


async def aiokafka_fixed(run: Run) -> None:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=run.broker.bootstrap,
        client_id="shop",
        group_id="shop",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    async with consumer:
        async for order in consumer:
            run.processed(order)


async def sluice_naive(run: Run) -> None:
    config = {
        "bootstrap.servers": run.broker.bootstrap,
        "client.id": "shop",
        "group.id": "shop",
        "auto.offset.reset": "earliest",
    }
    async with Consumer(config) as consumer:
        consumer.subscribe(["orders"])
        while True:
            for order in await consumer.poll(1000):
                run.processed(order)


async def sluice_fixed(run: Run) -> None:
    config = {
        "bootstrap.servers": run.broker.bootstrap,
        "client.id": "shop",
        "group.id": "shop",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    async with Consumer(config) as consumer:
        consumer.subscribe(["orders"])
        while True:
            for order in await consumer.poll(1000):
                run.processed(order)


async def importer(run: Run, imported: asyncio.Event) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=run.broker.bootstrap, client_id="importer", transactional_id="importer"
    )
    with suppress(KafkaError):  # such as of a producer that is fenced
        async with producer:
            for customer in range(CUSTOMERS):
                async with producer.transaction():
                    await producer.send_and_wait("orders", b"first of %d" % customer)
                    await producer.send_and_wait("orders", b"second of %d" % customer)
    imported.set()


@pytest.mark.kafka_explore(invariants=[NoAbortedRecords("orders")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_no_aborted_order_is_processed(kafka_run: Run, application) -> None:
    await kafka_run.broker.cluster.create_topic("orders")
    imported = asyncio.Event()
    kafka_run.start(lambda: importer(kafka_run, imported), "importer")
    kafka_run.start(lambda: application(kafka_run))
    await kafka_run.wait_for(lambda: imported.is_set(), within_s=300)
    await asyncio.sleep(5)
