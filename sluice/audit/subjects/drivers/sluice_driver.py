"""The driver of our own client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from sluice.audit.probes.probe import GROUP, POLL_MS, TOPIC, Call, Consume, Produce
from sluice.audit.subjects.subject import Job, OnCallback
from sluice.client.admin import AdminClient
from sluice.client.config import Given
from sluice.client.consumer import Consumer, TopicPartition
from sluice.client.errors import KafkaException
from sluice.client.producer import Producer
from sluice.errors import ConfigError

from .reporting import DriverReporter, job_from_stdin, print_line, run_for

_RETRY_AFTER_S = 0.1


async def run(job: Job, on_callback: OnCallback) -> None:
    reporter = DriverReporter(on_callback)
    config: Given = {"bootstrap.servers": job.bootstrap, "client.id": f"audit-{job.role}", **job.settings}
    random = Random(job.seed)
    while True:
        try:
            match job.workload:
                case Produce():
                    await run_for(job.workload.lifetime_ms, _produce(config, random, job.workload, reporter))
                case Consume():
                    await run_for(job.workload.lifetime_ms, _consume(config, random, job.workload, reporter))
                case Call():
                    await _call(config, random, job.workload, reporter)
        except ConfigError as error:
            reporter.event("rejected", error)
            await asyncio.Event().wait()
        reporter.event("closed")


@asynccontextmanager
async def _at_once(producer: Producer, reporter: DriverReporter) -> AsyncIterator[None]:
    reporter.event("started")
    await producer.__aenter__()
    reporter.event("ready")
    try:
        yield
    finally:
        await producer.close(timeout_ms=0)


async def _produce(config: Given, random: Random, workload: Produce, reporter: DriverReporter) -> None:
    producer = Producer(config, random=random)
    async with _at_once(producer, reporter), asyncio.TaskGroup() as group:
        for partition in range(workload.partitions):
            for _ in range(workload.pending):
                group.create_task(_send(producer, partition, workload.pause_ms, reporter))


async def _send(producer: Producer, partition: int, pause_ms: int, reporter: DriverReporter) -> None:
    while True:
        number = reporter.sent(partition)
        try:
            future = await producer.send(TOPIC, b"%d" % number, partition=partition)
            written = await future
        except KafkaException as error:
            reporter.failed(number, partition, error)
        else:
            reporter.delivered(number, partition, written.offset)
        await asyncio.sleep(pause_ms / 1000)


async def _consume(config: Given, random: Random, workload: Consume, reporter: DriverReporter) -> None:
    group = {"group.id": GROUP} if workload.in_group else {}
    reporter.event("started")
    async with Consumer({**config, **group}, random=random) as consumer:
        if workload.in_group:
            consumer.subscribe([TOPIC])
        else:
            consumer.assign([TopicPartition(TOPIC, 0)])
        reporter.event("ready")
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        while True:
            try:
                for record in await consumer.poll(workload.commit_every_ms or POLL_MS):
                    reporter.received(record.value, record.partition, record.offset)
                if workload.commit_every_ms and loop.time() >= due_s:
                    due_s = loop.time() + workload.commit_every_ms / 1000
                    await consumer.commit()
            except KafkaException as error:
                reporter.event("call-failed", error)
                await asyncio.sleep(_RETRY_AFTER_S)


async def _call(config: Given, random: Random, workload: Call, reporter: DriverReporter) -> None:
    reporter.event("started")
    async with AdminClient(config, random=random) as admin:
        reporter.event("ready")
        while True:
            try:
                (await admin.describe_classic_groups([GROUP])).all()
            except KafkaException as error:
                reporter.event("call-failed", error)
            await asyncio.sleep(workload.pause_ms / 1000)


if __name__ == "__main__":
    asyncio.run(run(job_from_stdin(), print_line))
