"""A lost response, and a retry of one's own.

The application sends an order again if it has no response within five seconds. The first attempt may have been
written, though, and the second one is another record for the broker, even from an idempotent producer: the order is
there twice. The fixed version leaves retries to the idempotent producer, which repeats a batch with the same sequence
number.
"""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from sluice.client.errors import KafkaException
from sluice.client.producer import Producer
from sluice.explore import NoDuplicates, Run

ORDERS = 8


async def aiokafka_naive(run: Run) -> None:
    async with aiokafka_producer(run) as producer:
        for number in range(ORDERS):
            while True:
                try:
                    await asyncio.wait_for(producer.send_and_wait("orders", b"%d" % number), timeout=5)
                    break
                except (KafkaError, TimeoutError):
                    await asyncio.sleep(0.1)  # try again


async def aiokafka_fixed(run: Run) -> None:
    async with aiokafka_producer(run) as producer:
        for number in range(ORDERS):
            await producer.send_and_wait("orders", b"%d" % number)


async def sluice_naive(run: Run) -> None:
    async with sluice_producer(run) as producer:
        for number in range(ORDERS):
            while True:
                try:
                    await asyncio.wait_for(await producer.send("orders", b"%d" % number), timeout=5)
                    break
                except (KafkaException, TimeoutError):
                    await asyncio.sleep(0.1)  # try again


async def sluice_fixed(run: Run) -> None:
    async with sluice_producer(run) as producer:
        for number in range(ORDERS):
            await (await producer.send("orders", b"%d" % number))


def aiokafka_producer(run: Run) -> AIOKafkaProducer:
    return AIOKafkaProducer(bootstrap_servers=run.broker.bootstrap, client_id="shop", enable_idempotence=True)


def sluice_producer(run: Run) -> Producer:
    return Producer({"bootstrap.servers": run.broker.bootstrap, "client.id": "shop"})


@pytest.mark.kafka_explore(invariants=[NoDuplicates("orders")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_every_order_is_written_once(kafka_run: Run, application) -> None:
    await kafka_run.broker.cluster.create_topic("orders")
    await application(kafka_run)
