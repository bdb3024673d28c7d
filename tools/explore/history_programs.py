"""Ordinary applications with aiokafka, of old versions too. They know none of its defects."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from sluice.explore import AtLeastOnce, Invariant, MonotonicCommits, NoCommitAhead, NoDuplicates, Run

from .own_programs import Contents

Application = Callable[[], Coroutine[Any, Any, None]]

_PARTITIONS = 2
_RECORDS = 6
_TOPICS = ("orders-a", "orders-b", "orders-c")
_METADATA_MS = 20_000  # until the members know a new topic
_RESTART_S = 1.0
_INTERNAL = "Unexpected error during"  # of the KafkaErrors by which aiokafka reports other exceptions of its tasks
_IDLE_S = 30.0  # longer than a rebalance after a failure
_WITHIN_S = 240.0  # after three pauses of 50 s, and a rebalance after each
_WORK_S = 0.01
_SENT = 24
_AT_ONCE = 4
_BETWEEN_S = 0.3  # between transactions, or what is sent at once
_JOB_EVERY_S = 5.0
_JOB_WAITS_MS = 5000  # for more records, before the job ends; longer than the first requests take in a slow network


class Program(NamedTuple):
    """A program.

    run: its coroutine function
    invariants: what holds in each run
    needless: kinds of failures that it does not survive, whatever its client does
    """

    run: Callable[[Run], Coroutine[Any, Any, None]]
    invariants: Sequence[Invariant] = ()
    needless: Sequence[str] = ()


@asynccontextmanager
async def _started(client: Any) -> AsyncIterator[Any]:
    """Start and stop a client; the context managers of old versions return None."""
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


def _supervised(application: Application) -> Application:
    """Return the application, started again after an error of Kafka, but not after one of the client's own code."""

    async def supervise() -> None:
        while True:
            try:
                return await application()
            except (KafkaError, OSError) as error:
                if _INTERNAL in str(error):
                    raise
                await asyncio.sleep(_RESTART_S)

    return supervise


def _member(run: Run) -> Any:
    return AIOKafkaConsumer(
        "orders", bootstrap_servers=run.broker.bootstrap, client_id="shop", group_id="shop",
        auto_offset_reset="earliest", enable_auto_commit=False,
    )  # fmt: skip


async def _ordered(run: Run) -> None:
    """Send orders at the start and after a pause; return when all are processed."""
    await run.broker.client().send("orders", *map(str, range(_RECORDS)))
    await run.wait_for(lambda: len(run.processed_records) == _RECORDS, within_s=_WITHIN_S)
    await asyncio.sleep(_IDLE_S)
    await run.broker.client().send("orders", *map(str, range(_RECORDS)))
    await run.wait_for(lambda: len(run.processed_records) == 2 * _RECORDS, within_s=_WITHIN_S)


async def _consumes(run: Run) -> None:
    """Process each record of a group, and commit it."""
    await run.broker.cluster.create_topic("orders", partitions=_PARTITIONS)

    async def shop() -> None:
        async with _started(_member(run)) as consumer:
            async for record in consumer:
                await asyncio.sleep(_WORK_S)
                run.processed(record)
                with suppress(KafkaError):
                    await consumer.commit()

    run.start(_supervised(shop), "shop")
    await _ordered(run)


async def _reads_in_jobs(run: Run) -> None:
    """Now and then, process all records that there are, and commit them."""
    await run.broker.cluster.create_topic("orders", partitions=_PARTITIONS)

    async def shop() -> None:
        while True:
            async with _started(_member(run)) as consumer:
                while found := await consumer.getmany(timeout_ms=_JOB_WAITS_MS):
                    for records in found.values():
                        for record in records:
                            run.processed(record)
                    await consumer.commit()
            await asyncio.sleep(_JOB_EVERY_S)

    run.start(_supervised(shop), "shop")
    await _ordered(run)


class _CommitsRevoked(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Commits what was processed of partitions that are revoked."""

    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer
        self.ends: dict[Any, int] = {}

    async def on_partitions_revoked(self, revoked: Any) -> None:
        await self.commit(revoked)
        self.ends.clear()

    async def on_partitions_assigned(self, assigned: Any) -> None:
        pass

    async def commit(self, partitions: Any) -> None:
        ends = {each: end for each, end in self.ends.items() if each in partitions}
        if ends:
            with suppress(KafkaError):
                await self.consumer.commit(ends)


async def _reads_by_pattern(run: Run) -> None:
    """Process the records of all topics of a pattern, of which there are ever more, and commit now and then."""
    for topic in _TOPICS[:-1]:
        await run.broker.cluster.create_topic(topic, partitions=_PARTITIONS)

    async def shop(name: str) -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=run.broker.bootstrap, client_id=name, group_id="shop", auto_offset_reset="earliest",
            enable_auto_commit=False, metadata_max_age_ms=_METADATA_MS,
        )  # fmt: skip
        async with _started(consumer):
            listener = _CommitsRevoked(consumer)
            consumer.subscribe(pattern="orders-.*", listener=listener)
            while True:
                found = await consumer.getmany(timeout_ms=_JOB_WAITS_MS)
                for partition, records in found.items():
                    for record in records:
                        run.processed(record)
                    listener.ends[partition] = records[-1].offset + 1
                if not found:
                    await listener.commit([*listener.ends])

    async def ordered(topic: str) -> None:
        before = len(run.processed_records)
        await run.broker.client().send(topic, *map(str, range(_RECORDS)))
        await run.wait_for(lambda: len(run.processed_records) == before + _RECORDS, within_s=_WITHIN_S)

    run.start(_supervised(partial(shop, "left")), "left")
    await ordered(_TOPICS[0])
    run.start(_supervised(partial(shop, "right")), "right")
    await asyncio.sleep(_IDLE_S)
    await ordered(_TOPICS[1])
    await run.broker.cluster.create_topic(_TOPICS[2], partitions=_PARTITIONS)
    await ordered(_TOPICS[2])


async def _billed(run: Run, application: Application) -> None:
    """Run an application that writes a bill for each order, until all bills are committed."""
    await run.broker.cluster.create_topic("bills", partitions=_PARTITIONS)
    billed: set[bytes] = set()

    async def reader() -> None:
        consumer = AIOKafkaConsumer(
            "bills", bootstrap_servers=run.broker.bootstrap, client_id="reader", auto_offset_reset="earliest",
            isolation_level="read_committed",
        )  # fmt: skip
        async with _started(consumer):
            async for record in consumer:
                billed.add(record.value)

    run.start(_supervised(application), "shop")
    run.start(_supervised(reader), "reader")
    await run.wait_for(lambda: len(billed) == _RECORDS, within_s=_WITHIN_S)


def _producer(run: Run) -> Any:
    return AIOKafkaProducer(bootstrap_servers=run.broker.bootstrap, client_id="shop", transactional_id="shop")


async def _writes(run: Run) -> None:
    """Write each bill in a transaction."""

    async def shop() -> None:
        async with _started(_producer(run)) as producer:
            for number in range(_RECORDS):
                async with producer.transaction():
                    await producer.send_and_wait("bills", b"%d" % number, partition=number % _PARTITIONS)
                await asyncio.sleep(_BETWEEN_S)

    await _billed(run, shop)


async def _copies(run: Run) -> None:
    """Write the bills of orders in transactions, with the offsets of the orders."""
    await run.broker.cluster.create_topic("orders", partitions=_PARTITIONS)
    await run.broker.client().send("orders", *map(str, range(_RECORDS)))

    async def shop() -> None:
        # The producer first: it ends the transaction of the instance before, and so its offsets are known.
        async with _started(_producer(run)) as producer, _started(_member(run)) as consumer:
            while True:
                for partition, records in (await consumer.getmany(timeout_ms=_JOB_WAITS_MS)).items():
                    async with producer.transaction():
                        for record in records:
                            await producer.send("bills", record.value, partition=record.partition)
                        ends = {partition: records[-1].offset + 1}
                        await producer.send_offsets_to_transaction(ends, "shop")

    await _billed(run, shop)


async def _sends(run: Run) -> None:
    """Send bills without a transaction, several at once, each of them once."""
    await run.broker.cluster.create_topic("bills", partitions=_PARTITIONS)
    sent = asyncio.Event()

    async def shop() -> None:
        bootstrap = run.broker.bootstrap
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="shop", enable_idempotence=True)
        async with _started(producer):
            for start in range(0, _SENT, _AT_ONCE):
                sending = [
                    await producer.send("bills", b"%d" % number, partition=number % _PARTITIONS)
                    for number in range(start, start + _AT_ONCE)
                ]
                await asyncio.gather(*sending)
                await asyncio.sleep(_BETWEEN_S)
        sent.set()

    run.start(shop, "shop")
    await run.wait_for(sent.is_set, within_s=_WITHIN_S)


_OF_ORDERS = (AtLeastOnce("orders"), NoCommitAhead("orders"))

PROGRAMS = {
    "consumes": Program(_consumes, [*_OF_ORDERS, MonotonicCommits("orders")]),
    "jobs": Program(_reads_in_jobs, _OF_ORDERS),
    "patterns": Program(_reads_by_pattern, [each(topic) for topic in _TOPICS for each in (AtLeastOnce, NoCommitAhead)]),
    # Another instance sends all again.
    "sends": Program(
        _sends,
        [
            Contents(
                "bills", [[b"%d" % each for each in range(index, _SENT, _PARTITIONS)] for index in range(_PARTITIONS)]
            )
        ],
        needless=("kill-before", "kill-after", "cancelled", "second-instance"),
    ),
    # Two instances with one transactional id fence each other.
    "writes": Program(_writes, needless=("second-instance",)),
    # Nor do brokers know whether a member commits offsets that another one has now: aiokafka sends no generation.
    "copies": Program(
        _copies,
        [NoDuplicates("bills")],
        needless=("second-instance", "session-expired", "rebalance", "paused", "stalled"),
    ),
}
