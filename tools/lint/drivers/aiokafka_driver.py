"""The aiokafka driver: in the harness' own event loop, in virtual or real time."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from tools.lint.job import OFFSETS_APART, Job

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}

_left_open: list[AIOKafkaProducer | AIOKafkaConsumer] = []


async def close_left_open() -> None:
    """Close the clients that jobs have left open."""
    while _left_open:
        await _left_open.pop().stop()


async def run(bootstrap: str, job: Job) -> None:
    """Do the job; errors end it, as they would end an application."""
    roles = {"produce": _produce, "consume": _consume, "copy": _copy}
    await roles[job.role](bootstrap, job)


async def _end(client: AIOKafkaProducer | AIOKafkaConsumer, job: Job) -> None:
    if job.leave:
        await client.stop()
    else:
        _left_open.append(client)


def _settings(bootstrap: str, job: Job, **more: object) -> dict[str, Any]:
    settings: dict[str, Any] = {"bootstrap_servers": bootstrap, **more, **job.settings}
    if job.client_id:
        settings["client_id"] = job.client_id
    if isinstance(strategy := settings.get("partition_assignment_strategy"), list):
        settings["partition_assignment_strategy"] = tuple(ASSIGNORS[each] for each in strategy)
    return settings


@asynccontextmanager
async def _producer(bootstrap: str, job: Job) -> AsyncIterator[AIOKafkaProducer]:
    more = {"transactional_id": job.transactional_id} if job.transactional_id else {}
    producer = AIOKafkaProducer(**_settings(bootstrap, job, **more))
    await producer.start()
    try:
        yield producer
    finally:
        await _end(producer, job)


async def _send(producer: AIOKafkaProducer, job: Job, burst: int) -> None:
    sent = []
    for number in range(burst * job.records, (burst + 1) * job.records):
        stamp = int(time.time() * 1000) + job.skew_ms if job.skew_ms else None
        topic = job.topics[number % len(job.topics)]
        sent.append(await producer.send(topic, job.value_of(number), job.key_of(number), timestamp_ms=stamp))
        if job.wait_each:
            await sent[-1]
    if job.wait:
        await asyncio.gather(*sent)
    else:
        for each in sent:
            each.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _bursts(producer: AIOKafkaProducer, job: Job, numbers: range) -> None:
    for burst in numbers:
        if not job.transactional_id:
            await _send(producer, job, burst)
        else:
            await producer.begin_transaction()
            await _send(producer, job, burst)
            await asyncio.sleep(job.hold_ms / 1e3)
            if not job.leaves_open(burst):
                await (producer.abort_transaction() if job.abort else producer.commit_transaction())
        await asyncio.sleep(job.every_ms / 1e3)


async def _produce(bootstrap: str, job: Job) -> None:
    parts = [range(burst, burst + 1) for burst in range(job.bursts)] if job.new_client else [range(job.bursts)]
    for part in parts:
        async with _producer(bootstrap, job) as producer:
            await _bursts(producer, job, part)


@asynccontextmanager
async def _consumer(bootstrap: str, job: Job) -> AsyncIterator[AIOKafkaConsumer]:
    more: dict[str, object] = {"auto_offset_reset": "earliest"}
    if job.group:
        more["group_id"] = job.group
        more["enable_auto_commit"] = job.commit == "auto" and job.role == "consume"
    if job.instance_id:
        more["group_instance_id"] = job.instance_id
    consumer = AIOKafkaConsumer(*(job.topics if job.group else ()), **_settings(bootstrap, job, **more))
    await consumer.start()
    try:
        if not job.group:
            assigned = [
                TopicPartition(topic, partition)
                for topic in job.topics
                for partition in await _partitions(consumer, topic, job.partitions)
            ]
            consumer.assign(assigned)
        yield consumer
    finally:
        await _end(consumer, job)


async def _partitions(consumer: AIOKafkaConsumer, topic: str, most: int) -> set[int]:
    # `topics` lists topics without their partitions.
    await consumer._client.set_topics([*consumer._client._topics, topic])
    partitions = consumer.partitions_for_topic(topic) or {0}
    return {each for each in partitions if not most or each < most}


async def _commit(consumer: AIOKafkaConsumer, job: Job, partition: TopicPartition, offset: int) -> None:
    for apart in OFFSETS_APART[job.commit]:
        await consumer.commit({partition: max(0, offset + apart)})


async def _consume(bootstrap: str, job: Job) -> None:
    loop = asyncio.get_running_loop()
    ends = loop.time() + job.for_ms / 1e3
    while loop.time() < ends:
        until = min(ends, loop.time() + job.rejoin_ms / 1e3) if job.rejoin_ms else ends
        async with _consumer(bootstrap, job.next_life()) as consumer:
            while loop.time() < until:
                await _poll(consumer, job)
                if job.new_client:
                    break


async def _poll(consumer: AIOKafkaConsumer, job: Job) -> None:
    found = await consumer.getmany(timeout_ms=job.poll_ms, max_records=job.most)
    for partition, records in found.items():
        if job.group and job.commit == "record":
            for record in records:
                await _commit(consumer, job, partition, record.offset + 1)
        elif job.group and job.commit in OFFSETS_APART:
            await _commit(consumer, job, partition, records[-1].offset + 1)
    await asyncio.sleep(((job.process_ms if found else 0) + job.rest_ms) / 1e3)


async def _copy(bootstrap: str, job: Job) -> None:
    loop = asyncio.get_running_loop()
    ends = loop.time() + job.for_ms / 1e3
    producing = msgspec.structs.replace(job, settings=job.output_settings)
    async with _consumer(bootstrap, job) as consumer, _producer(bootstrap, producing) as producer:
        while loop.time() < ends:
            found = await consumer.getmany(timeout_ms=job.poll_ms, max_records=job.most)
            if found:
                await producer.begin_transaction()
                for records in found.values():
                    await asyncio.gather(*[await producer.send(job.output, each.value) for each in records])
                offsets = {partition: records[-1].offset + 1 for partition, records in found.items()}
                await producer.send_offsets_to_transaction(offsets, job.group)
                await asyncio.sleep(job.hold_ms / 1e3)
                await producer.commit_transaction()
            await asyncio.sleep(((job.process_ms if found else 0) + job.rest_ms) / 1e3)
