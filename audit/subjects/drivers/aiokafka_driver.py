"""aiokafka: a producer, a consumer, an admin client. Run as a process, or as a task in virtual time."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from sluice.audit.probes import GROUP, POLL_MS, TOPIC, Call, Consume, Produce
from sluice.audit.subjects.subject import Job, Tell

from .client_lifetimes import live
from .reporting import Teller, job_from_stdin, print_line

_FAILED_S = 0.1  # until what has failed is tried again
_AGAIN_S = 0.5  # after a client that could not start
_CLOSE_S = 0.1


async def run(job: Job, tell: Tell) -> None:
    """Works until it is cancelled."""
    teller = Teller(tell)
    config: dict[str, Any] = {
        "bootstrap_servers": job.bootstrap,
        "client_id": f"audit-{job.role}",
        **job.settings,
    }
    while True:
        try:
            match job.workload:
                case Produce():
                    await live(job.workload.lives_ms, _produce(config, job.workload, teller))
                case Consume():
                    await live(job.workload.lives_ms, _consume(config, job.workload, teller))
                case Call():
                    await _call(config, job.workload, teller)
        except (ValueError, TypeError) as error:  # what it makes of settings that cannot be
            teller.event("rejected", error)
            await asyncio.Event().wait()
        except KafkaError as error:  # it could not start
            teller.event("call-failed", error)
            await asyncio.sleep(_AGAIN_S)
        teller.event("closed")


async def _close(closing: Coroutine[object, object, None]) -> None:
    """Closes a client, which is not waited for long: it may still want to send what it has."""
    with suppress(TimeoutError, KafkaError):
        await asyncio.wait_for(closing, _CLOSE_S)


async def _produce(config: dict[str, Any], workload: Produce, teller: Teller) -> None:
    producer = AIOKafkaProducer(**config)
    teller.event("started")
    try:
        await producer.start()
        teller.event("ready")
        async with asyncio.TaskGroup() as group:
            for partition in range(workload.partitions):
                for _ in range(workload.pending):
                    group.create_task(_send(producer, partition, workload.pause_ms, teller))
    finally:
        await _close(producer.stop())


async def _send(producer: AIOKafkaProducer, partition: int, pause_ms: int, teller: Teller) -> None:
    while True:
        number = teller.sent(partition)
        try:
            written = await producer.send_and_wait(TOPIC, b"%d" % number, partition=partition)
        except KafkaError as error:
            teller.failed(number, partition, error)
        else:
            teller.delivered(number, partition, written.offset)
        await asyncio.sleep(pause_ms / 1000)


async def _consume(config: dict[str, Any], workload: Consume, teller: Teller) -> None:
    topics = [TOPIC] if workload.in_group else []
    consumer = AIOKafkaConsumer(*topics, group_id=GROUP if workload.in_group else None, **config)
    teller.event("started")
    loop = asyncio.get_running_loop()
    due_s = loop.time()
    try:
        await consumer.start()
        if not workload.in_group:
            consumer.assign([TopicPartition(TOPIC, 0)])
        teller.event("ready")
        while True:
            try:
                polled = await consumer.getmany(timeout_ms=workload.commit_every_ms or POLL_MS)
                for record in (record for records in polled.values() for record in records):
                    teller.received(record.value, record.partition, record.offset)
                if workload.commit_every_ms and loop.time() >= due_s:
                    due_s = loop.time() + workload.commit_every_ms / 1000
                    await consumer.commit()
            except KafkaError as error:
                teller.event("call-failed", error)
                await asyncio.sleep(_FAILED_S)
    finally:
        await _close(consumer.stop())


async def _call(config: dict[str, Any], workload: Call, teller: Teller) -> None:
    admin = AIOKafkaAdminClient(**config)
    teller.event("started")
    try:
        await admin.start()
        teller.event("ready")
        while True:
            try:
                answers = await admin.describe_consumer_groups([GROUP])
                codes = [group[0] for answer in answers for group in answer.groups]
                if any(codes):
                    teller.event("call-failed", str(codes))
            except KafkaError as error:
                teller.event("call-failed", error)
            await asyncio.sleep(workload.pause_ms / 1000)
    finally:
        await _close(admin.close())


if __name__ == "__main__":
    asyncio.run(run(job_from_stdin(), print_line))
