"""An offset that is stored after its partition was revoked.

A worker processes orders in the background, and stores the offset after each; the main loop commits what is stored.
After a rebalance, the worker still has orders of the former assignment, and stores their offsets as well: the
committed offset then jumps back, behind what the new owner of the partition has committed. In the fixed version, the
worker ends when partitions are revoked, and its queue and offsets are dropped.
"""

import asyncio
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from sluice.client.consumer import Consumer, OffsetAndMetadata, RebalanceListener
from sluice.client.consumer import TopicPartition as Partition
from sluice.client.errors import KafkaException
from sluice.explore import AtLeastOnce, MonotonicCommits, Run

ORDERS = 8
WORK_S = 0.5  # to process an order


async def aiokafka_naive(run: Run) -> None:
    queue, stored = asyncio.Queue(), {}

    async def work() -> None:
        while True:
            order = await queue.get()
            await asyncio.sleep(WORK_S)
            run.processed(order)
            stored[TopicPartition(order.topic, order.partition)] = order.offset + 1

    async with aiokafka_consumer(run) as consumer, asyncio.TaskGroup() as tasks:
        consumer.subscribe(["orders"])
        tasks.create_task(work())
        while True:
            for orders in (await consumer.getmany(timeout_ms=500)).values():
                for order in orders:
                    queue.put_nowait(order)
            if stored:
                with suppress(KafkaError):  # after a rebalance
                    await consumer.commit(stored)


async def aiokafka_fixed(run: Run) -> None:
    queue, stored, workers = asyncio.Queue(), {}, []

    async def work() -> None:
        while True:
            order = await queue.get()
            await asyncio.sleep(WORK_S)
            run.processed(order)
            stored[TopicPartition(order.topic, order.partition)] = order.offset + 1

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            while workers:
                workers.pop().cancel()
            while not queue.empty():
                queue.get_nowait()
            stored.clear()

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            workers.append(tasks.create_task(work()))

    async with aiokafka_consumer(run) as consumer, asyncio.TaskGroup() as tasks:
        consumer.subscribe(["orders"], listener=Listener())
        while True:
            for orders in (await consumer.getmany(timeout_ms=500)).values():
                for order in orders:
                    queue.put_nowait(order)
            if stored:
                with suppress(KafkaError):
                    await consumer.commit(stored)


async def sluice_naive(run: Run) -> None:
    queue, stored = asyncio.Queue(), {}

    async def work() -> None:
        while True:
            order = await queue.get()
            await asyncio.sleep(WORK_S)
            run.processed(order)
            stored[Partition(order.topic, order.partition)] = OffsetAndMetadata(order.offset + 1)

    async with sluice_consumer(run) as consumer, asyncio.TaskGroup() as tasks:
        consumer.subscribe(["orders"])
        tasks.create_task(work())
        while True:
            for order in await consumer.poll(500):
                queue.put_nowait(order)
            if stored:
                with suppress(KafkaException):  # after a rebalance
                    await consumer.commit(stored)


async def sluice_fixed(run: Run) -> None:
    queue, stored, workers = asyncio.Queue(), {}, []

    async def work() -> None:
        while True:
            order = await queue.get()
            await asyncio.sleep(WORK_S)
            run.processed(order)
            stored[Partition(order.topic, order.partition)] = OffsetAndMetadata(order.offset + 1)

    class Listener(RebalanceListener):
        async def on_partitions_revoked(self, revoked: list[Partition]) -> None:
            while workers:
                workers.pop().cancel()
            while not queue.empty():
                queue.get_nowait()
            stored.clear()

        async def on_partitions_assigned(self, assigned: list[Partition]) -> None:
            workers.append(tasks.create_task(work()))

    async with sluice_consumer(run) as consumer, asyncio.TaskGroup() as tasks:
        consumer.subscribe(["orders"], listener=Listener())
        while True:
            for order in await consumer.poll(500):
                queue.put_nowait(order)
            if stored:
                with suppress(KafkaException):
                    await consumer.commit(stored)


def aiokafka_consumer(run: Run) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
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


def committed(run: Run) -> list[int]:
    """Return the offsets of all commits that succeeded."""
    commits = run.broker.journal.requests(api="OffsetCommit")
    return [commit.partitions[0].offset for commit in commits if not commit.error_codes]


@pytest.mark.kafka_explore(invariants=[AtLeastOnce("orders"), MonotonicCommits("orders")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_committed_offset_never_goes_back(kafka_run: Run, application) -> None:
    await kafka_run.broker.cluster.create_topic("orders")
    await kafka_run.broker.client().send("orders", *map(str, range(ORDERS)))
    kafka_run.start(lambda: application(kafka_run))
    await kafka_run.wait_for(lambda: ORDERS in committed(kafka_run), within_s=300)
    await asyncio.sleep(5)
