"""The driver of aiokafka."""

import asyncio
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from sluice.audit.probes.probe import GROUP, POLL_MS, TOPIC, Call, Consume, Produce
from sluice.audit.subjects.subject import Job, OnCallback

from .reporting import DriverReporter, job_from_stdin, print_line, run_for

_RETRY_AFTER_S = 0.1
_RESTART_AFTER_S = 0.5
_CLOSE_S = 0.1


async def run(job: Job, on_callback: OnCallback) -> None:
    reporter = DriverReporter(on_callback)
    config: dict[str, Any] = {"bootstrap_servers": job.bootstrap, "client_id": f"audit-{job.role}", **job.settings}
    if config.get("security_protocol") == "SSL":
        config["ssl_context"] = ssl.create_default_context()
    while True:
        try:
            match job.workload:
                case Produce():
                    await run_for(job.workload.lifetime_ms, _produce(config, job.workload, reporter))
                case Consume():
                    await run_for(job.workload.lifetime_ms, _consume(config, job.workload, reporter))
                case Call():
                    await _call(config, job.workload, reporter)
        except (ValueError, TypeError) as error:
            reporter.event("rejected", error)
            await asyncio.Event().wait()
        except KafkaError as error:
            reporter.event("call-failed", error)
            await asyncio.sleep(_RESTART_AFTER_S)
        reporter.event("closed")


async def _close(closing: Coroutine[object, object, None]) -> None:
    """Close a client with a short timeout: it may still have records to send."""
    with suppress(TimeoutError, KafkaError):
        await asyncio.wait_for(closing, _CLOSE_S)


async def _produce(config: dict[str, Any], workload: Produce, reporter: DriverReporter) -> None:
    producer = AIOKafkaProducer(**config)
    reporter.event("started")
    try:
        await producer.start()
        reporter.event("ready")
        async with asyncio.TaskGroup() as group:
            for partition in range(workload.partitions):
                for _ in range(workload.pending):
                    group.create_task(_send(producer, partition, workload.pause_ms, reporter))
    finally:
        await _close(producer.stop())


async def _send(producer: AIOKafkaProducer, partition: int, pause_ms: int, reporter: DriverReporter) -> None:
    while True:
        number = reporter.sent(partition)
        try:
            written = await producer.send_and_wait(TOPIC, b"%d" % number, partition=partition)
        except KafkaError as error:
            reporter.failed(number, partition, error)
        else:
            reporter.delivered(number, partition, written.offset)
        await asyncio.sleep(pause_ms / 1000)


async def _consume(config: dict[str, Any], workload: Consume, reporter: DriverReporter) -> None:
    topics = [TOPIC] if workload.in_group else []
    consumer = AIOKafkaConsumer(*topics, group_id=GROUP if workload.in_group else None, **config)
    reporter.event("started")
    loop = asyncio.get_running_loop()
    due_s = loop.time()
    try:
        await consumer.start()
        if not workload.in_group:
            consumer.assign([TopicPartition(TOPIC, 0)])
        reporter.event("ready")
        while True:
            try:
                polled = await consumer.getmany(timeout_ms=workload.commit_every_ms or POLL_MS)
                for record in (record for records in polled.values() for record in records):
                    reporter.received(record.value, record.partition, record.offset)
                if workload.commit_every_ms and loop.time() >= due_s:
                    due_s = loop.time() + workload.commit_every_ms / 1000
                    await consumer.commit()
            except KafkaError as error:
                reporter.event("call-failed", error)
                await asyncio.sleep(_RETRY_AFTER_S)
    finally:
        await _close(consumer.stop())


async def _call(config: dict[str, Any], workload: Call, reporter: DriverReporter) -> None:
    admin = AIOKafkaAdminClient(**config)
    reporter.event("started")
    try:
        await admin.start()
        reporter.event("ready")
        while True:
            try:
                answers = await admin.describe_consumer_groups([GROUP])
                codes = [group[0] for answer in answers for group in answer.groups]
                if any(codes):
                    reporter.event("call-failed", str(codes))
            except KafkaError as error:
                reporter.event("call-failed", error)
            await asyncio.sleep(workload.pause_ms / 1000)
    finally:
        await _close(admin.close())


if __name__ == "__main__":
    asyncio.run(run(job_from_stdin(), print_line))
