"""Paused for ever after a rebalance.

The application pauses a partition while a task processes some of its orders, and resumes it afterwards. A rebalance
does not keep pauses, so the application remembers them, and pauses a partition again that it gets back. The task of a
revoked partition is cancelled, as the next owner repeats the orders. If the same instance is the next owner, it
pauses the partition again, but no task is left that resumes it. The fixed version forgets the pause of a revoked
partition.
"""

import asyncio
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from sluice.client.consumer import Consumer, OffsetAndMetadata, RebalanceListener
from sluice.client.consumer import TopicPartition as Partition
from sluice.client.errors import KafkaException
from sluice.explore import AtLeastOnce, Run

ORDERS = 8
WORK_S = 1  # to process an order


async def aiokafka_naive(run: Run) -> None:
    paused, tasks = set(), {}

    async def process(partition: TopicPartition, orders: list) -> None:
        for order in orders:
            await asyncio.sleep(WORK_S)
            run.processed(order)
        with suppress(KafkaError):  # after a rebalance
            await consumer.commit({partition: orders[-1].offset + 1})
        paused.discard(partition)
        with suppress(KafkaError):
            consumer.resume(partition)

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            for partition in tasks.keys() & revoked:
                tasks.pop(partition).cancel()

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            consumer.pause(*paused.intersection(assigned))

    async with aiokafka_consumer(run) as consumer, asyncio.TaskGroup() as group:
        consumer.subscribe(["orders"], listener=Listener())
        while True:
            for partition, orders in (await consumer.getmany(timeout_ms=500, max_records=3)).items():
                consumer.pause(partition)
                paused.add(partition)
                tasks[partition] = group.create_task(process(partition, orders))


async def aiokafka_fixed(run: Run) -> None:
    paused, tasks = set(), {}

    async def process(partition: TopicPartition, orders: list) -> None:
        for order in orders:
            await asyncio.sleep(WORK_S)
            run.processed(order)
        with suppress(KafkaError):  # after a rebalance
            await consumer.commit({partition: orders[-1].offset + 1})
        paused.discard(partition)
        with suppress(KafkaError):
            consumer.resume(partition)

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            for partition in tasks.keys() & revoked:
                tasks.pop(partition).cancel()
                paused.discard(partition)

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            consumer.pause(*paused.intersection(assigned))

    async with aiokafka_consumer(run) as consumer, asyncio.TaskGroup() as group:
        consumer.subscribe(["orders"], listener=Listener())
        while True:
            for partition, orders in (await consumer.getmany(timeout_ms=500, max_records=3)).items():
                consumer.pause(partition)
                paused.add(partition)
                tasks[partition] = group.create_task(process(partition, orders))


async def sluice_naive(run: Run) -> None:
    paused, tasks = set(), {}

    async def process(partition: Partition, orders: list) -> None:
        for order in orders:
            await asyncio.sleep(WORK_S)
            run.processed(order)
        with suppress(KafkaException):  # after a rebalance
            await consumer.commit({partition: OffsetAndMetadata(orders[-1].offset + 1)})
        paused.discard(partition)
        if partition in consumer.assignment():
            consumer.resume([partition])

    class Listener(RebalanceListener):
        async def on_partitions_revoked(self, revoked: list[Partition]) -> None:
            for partition in tasks.keys() & revoked:
                tasks.pop(partition).cancel()

        async def on_partitions_assigned(self, assigned: list[Partition]) -> None:
            consumer.pause(paused.intersection(assigned))

    async with sluice_consumer(run) as consumer, asyncio.TaskGroup() as group:
        consumer.subscribe(["orders"], listener=Listener())
        while True:
            orders = await consumer.poll(500)
            for partition in {Partition(order.topic, order.partition) for order in orders}:
                consumer.pause([partition])
                paused.add(partition)
                tasks[partition] = group.create_task(process(partition, orders))


async def sluice_fixed(run: Run) -> None:
    paused, tasks = set(), {}

    async def process(partition: Partition, orders: list) -> None:
        for order in orders:
            await asyncio.sleep(WORK_S)
            run.processed(order)
        with suppress(KafkaException):  # after a rebalance
            await consumer.commit({partition: OffsetAndMetadata(orders[-1].offset + 1)})
        paused.discard(partition)
        if partition in consumer.assignment():
            consumer.resume([partition])

    class Listener(RebalanceListener):
        async def on_partitions_revoked(self, revoked: list[Partition]) -> None:
            for partition in tasks.keys() & revoked:
                tasks.pop(partition).cancel()
                paused.discard(partition)

        async def on_partitions_assigned(self, assigned: list[Partition]) -> None:
            consumer.pause(paused.intersection(assigned))

    async with sluice_consumer(run) as consumer, asyncio.TaskGroup() as group:
        consumer.subscribe(["orders"], listener=Listener())
        while True:
            orders = await consumer.poll(500)
            for partition in {Partition(order.topic, order.partition) for order in orders}:
                consumer.pause([partition])
                paused.add(partition)
                tasks[partition] = group.create_task(process(partition, orders))


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
            "max.poll.records": 3,
        }
    )


@pytest.mark.kafka_explore(invariants=[AtLeastOnce("orders")])
@pytest.mark.parametrize("application", [aiokafka_naive, aiokafka_fixed, sluice_naive, sluice_fixed])
async def test_every_order_is_processed(kafka_run: Run, application) -> None:
    await kafka_run.broker.cluster.create_topic("orders")
    await kafka_run.broker.client().send("orders", *map(str, range(ORDERS)))
    kafka_run.start(lambda: application(kafka_run))
    await kafka_run.wait_for(lambda: ("orders", 0, ORDERS - 1) in kafka_run.processed_records, within_s=300)
