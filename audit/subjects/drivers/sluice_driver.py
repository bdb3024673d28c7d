"""Our own client: a producer, a consumer, an admin client. Run as a process, or as a task in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from sluice.audit.probes import GROUP, POLL_MS, TOPIC, Call, Consume, Produce
from sluice.audit.subjects.subject import Job, Tell
from sluice.client.admin import AdminClient
from sluice.client.config import Given
from sluice.client.consumer import Consumer, TopicPartition
from sluice.client.errors import KafkaException
from sluice.client.producer import Producer
from sluice.errors import ConfigError

from .client_lifetimes import live
from .reporting import Teller, job_from_stdin, print_line

_FAILED_S = 0.1  # until what has failed is tried again


async def run(job: Job, tell: Tell) -> None:
    """Works until it is cancelled."""
    teller = Teller(tell)
    config: Given = {"bootstrap.servers": job.bootstrap, "client.id": f"audit-{job.role}", **job.settings}
    random = Random(job.seed)
    while True:
        try:
            match job.workload:
                case Produce():
                    await live(job.workload.lives_ms, _produce(config, random, job.workload, teller))
                case Consume():
                    await live(job.workload.lives_ms, _consume(config, random, job.workload, teller))
                case Call():
                    await _call(config, random, job.workload, teller)
        except ConfigError as error:
            teller.event("rejected", error)
            await asyncio.Event().wait()
        teller.event("closed")


@asynccontextmanager
async def _at_once(producer: Producer, teller: Teller) -> AsyncIterator[None]:
    """A producer that is closed without waiting for what it still has."""
    teller.event("started")
    await producer.__aenter__()
    teller.event("ready")
    try:
        yield
    finally:
        await producer.close(timeout_ms=0)


async def _produce(config: Given, random: Random, workload: Produce, teller: Teller) -> None:
    producer = Producer(config, random=random)
    async with _at_once(producer, teller), asyncio.TaskGroup() as group:
        for partition in range(workload.partitions):
            for _ in range(workload.pending):
                group.create_task(_send(producer, partition, workload.pause_ms, teller))


async def _send(producer: Producer, partition: int, pause_ms: int, teller: Teller) -> None:
    while True:
        number = teller.sent(partition)
        try:
            future = await producer.send(TOPIC, b"%d" % number, partition=partition)
            written = await future
        except KafkaException as error:
            teller.failed(number, partition, error)
        else:
            teller.delivered(number, partition, written.offset)
        await asyncio.sleep(pause_ms / 1000)


async def _consume(config: Given, random: Random, workload: Consume, teller: Teller) -> None:
    group = {"group.id": GROUP} if workload.in_group else {}
    teller.event("started")
    async with Consumer({**config, **group}, random=random) as consumer:
        if workload.in_group:
            consumer.subscribe([TOPIC])
        else:
            consumer.assign([TopicPartition(TOPIC, 0)])
        teller.event("ready")
        loop = asyncio.get_running_loop()
        due_s = loop.time()
        while True:
            try:
                for record in await consumer.poll(workload.commit_every_ms or POLL_MS):
                    teller.received(record.value, record.partition, record.offset)
                if workload.commit_every_ms and loop.time() >= due_s:
                    due_s = loop.time() + workload.commit_every_ms / 1000
                    await consumer.commit()
            except KafkaException as error:
                teller.event("call-failed", error)
                await asyncio.sleep(_FAILED_S)


async def _call(config: Given, random: Random, workload: Call, teller: Teller) -> None:
    teller.event("started")
    async with AdminClient(config, random=random) as admin:
        teller.event("ready")
        while True:
            try:
                (await admin.describe_classic_groups([GROUP])).all()
            except KafkaException as error:
                teller.event("call-failed", error)
            await asyncio.sleep(workload.pause_ms / 1000)


if __name__ == "__main__":
    asyncio.run(run(job_from_stdin(), print_line))
