"""Records of an aborted transaction are counted.

An importer writes the orders of each customer in a transaction, and counts what it has written. If it takes too long,
the importer aborts the transaction, and begins again; what it has counted until then is counted twice. The fixed
version counts after the commit.
"""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from sluice.client.errors import KafkaException
from sluice.client.producer import Producer
from sluice.explore import NoDuplicates, Run

CUSTOMERS = 4
ORDERS = ("first", "second")  # of each customer
LIMIT_S = 10  # for the orders of a customer


async def aiokafka_naive(run: Run) -> int:
    imported = 0
    async with aiokafka_producer(run) as producer:
        for customer in range(CUSTOMERS):
            is_imported = False
            while not is_imported:
                try:
                    async with producer.transaction(), asyncio.timeout(LIMIT_S):
                        for order in ORDERS:
                            await producer.send_and_wait("orders", b"%s of %d" % (order.encode(), customer))
                            imported += 1
                    is_imported = True
                except TimeoutError:
                    continue  # the transaction was aborted
    return imported


async def aiokafka_fixed(run: Run) -> int:
    imported = 0
    async with aiokafka_producer(run) as producer:
        for customer in range(CUSTOMERS):
            is_imported = False
            while not is_imported:
                try:
                    async with producer.transaction(), asyncio.timeout(LIMIT_S):
                        for order in ORDERS:
                            await producer.send_and_wait("orders", b"%s of %d" % (order.encode(), customer))
                    imported += len(ORDERS)
                    is_imported = True
                except TimeoutError:
                    continue  # the transaction was aborted
    return imported


async def sluice_naive(run: Run) -> int:
    imported = 0
    async with sluice_producer(run) as producer:
        await producer.init_transactions()
        for customer in range(CUSTOMERS):
            is_imported = False
            while not is_imported:
                producer.begin_transaction()
                try:
                    async with asyncio.timeout(LIMIT_S):
                        for order in ORDERS:
                            await (await producer.send("orders", b"%s of %d" % (order.encode(), customer)))
                            imported += 1
                except TimeoutError:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
                    is_imported = True
    return imported


async def sluice_fixed(run: Run) -> int:
    imported = 0
    async with sluice_producer(run) as producer:
        await producer.init_transactions()
        for customer in range(CUSTOMERS):
            is_imported = False
            while not is_imported:
                producer.begin_transaction()
                try:
                    async with asyncio.timeout(LIMIT_S):
                        for order in ORDERS:
                            await (await producer.send("orders", b"%s of %d" % (order.encode(), customer)))
                except TimeoutError:
                    await producer.abort_transaction()
                else:
                    await producer.commit_transaction()
                    imported += len(ORDERS)
                    is_imported = True
    return imported


def aiokafka_producer(run: Run) -> AIOKafkaProducer:
    return AIOKafkaProducer(bootstrap_servers=run.broker.bootstrap, client_id="importer", transactional_id="importer")


def sluice_producer(run: Run) -> Producer:
    return Producer(
        {"bootstrap.servers": run.broker.bootstrap, "client.id": "importer", "transactional.id": "importer"}
    )


@pytest.mark.kafka_explore(invariants=[NoDuplicates("orders")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_importer_counts_what_it_has_written(kafka_run: Run, application) -> None:
    await kafka_run.broker.cluster.create_topic("orders")
    try:
        imported = await application(kafka_run)
    except (KafkaError, KafkaException):  # such as of a producer that is fenced
        return
    assert imported == CUSTOMERS * len(ORDERS)
