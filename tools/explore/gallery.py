"""Applications with a classical bug each, in the naive and in the fixed version."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, ProducerFenced

from sluice.explore import AtLeastOnce, ExactlyOnce, Invariant, NoDuplicates, Run
from sluice.explore.execution import Program

_RECORDS = 8
_WORK_S = 0.01  # time to process a record
_PAUSE_S = 0.2


class Bug(NamedTuple):
    """A bug.

    title: what the application does wrong
    naive, fixed: the programs
    invariants: what the naive program violates
    """

    title: str
    naive: Program
    fixed: Program
    invariants: Sequence[Invariant]


async def _produce(run: Run, first: int = 0, count: int = _RECORDS) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=run.broker.bootstrap, client_id="orders-in", enable_idempotence=True
    ) as producer:
        for number in range(first, first + count):
            await producer.send_and_wait("orders", b"%d" % number)


def _consumer(run: Run, **settings: object) -> AIOKafkaConsumer:
    given = {"group_id": "shop", "auto_offset_reset": "earliest", "enable_auto_commit": False} | settings
    return AIOKafkaConsumer("orders", bootstrap_servers=run.broker.bootstrap, client_id="shop", **given)


async def _commit(consumer: AIOKafkaConsumer) -> None:
    """Commit, or continue: if the partition was lost, its next owner processes the records again."""
    with suppress(KafkaError):
        await consumer.commit()


def _reading(application: Callable[[Run], Callable[[], object]], **until: int) -> Program:
    """Return a program that produces, starts the application, and waits until it has processed the last record."""

    async def program(run: Run) -> None:
        await run.broker.cluster.create_topic("orders")
        await _produce(run)
        run.start(application(run))  # type: ignore[arg-type]  # a coroutine function
        await run.wait_for(lambda: ("orders", 0, _RECORDS - 1) in run.processed_records, within_s=300)

    return program


# -- a commit before the processing ------------------------------------------------------------------------------------


def _commits_first(run: Run) -> Callable[[], object]:
    async def application() -> None:
        async with _consumer(run) as consumer:
            async for record in consumer:
                await _commit(consumer)
                await asyncio.sleep(_WORK_S)
                run.processed(record)

    return application


def _commits_last(run: Run) -> Callable[[], object]:
    async def application() -> None:
        async with _consumer(run) as consumer:
            async for record in consumer:
                await asyncio.sleep(_WORK_S)
                run.processed(record)
                await _commit(consumer)

    return application


# -- processing that must happen once ----------------------------------------------------------------------------------


def _remembers(run: Run) -> Callable[[], object]:
    done: set[tuple[int, int]] = set()  # as a database that the application writes in the same transaction

    async def application() -> None:
        async with _consumer(run) as consumer:
            async for record in consumer:
                await asyncio.sleep(_WORK_S)
                if (record.partition, record.offset) not in done:
                    done.add((record.partition, record.offset))
                    run.processed(record)
                await _commit(consumer)

    return application


# -- a retry of a producer without idempotence -------------------------------------------------------------------------


def _sending(*, is_idempotent: bool) -> Program:
    async def program(run: Run) -> None:
        await run.broker.cluster.create_topic("orders")
        async with AIOKafkaProducer(
            bootstrap_servers=run.broker.bootstrap, client_id="shop", enable_idempotence=is_idempotent
        ) as producer:
            for number in range(_RECORDS):
                await producer.send_and_wait("orders", b"%d" % number)

    return program


# -- auto.offset.reset=latest ------------------------------------------------------------------------------------------


def _from(reset: str) -> Program:
    async def program(run: Run) -> None:
        await run.broker.cluster.create_topic("orders")

        async def application() -> None:
            async with _consumer(run, auto_offset_reset=reset) as consumer:
                async for record in consumer:
                    run.processed(record)
                    await _commit(consumer)

        run.start(application)
        await run.wait_for(lambda: run.broker.journal.requests(client_id="shop", api="Fetch"))
        await _produce(run)
        await run.wait_for(lambda: ("orders", 0, _RECORDS - 1) in run.processed_records, within_s=300)

    return program


# -- aborted transactions ----------------------------------------------------------------------------------------------


def _counting(isolation_level: str) -> Program:
    async def program(run: Run) -> None:
        await run.broker.cluster.create_topic("orders")
        is_done = asyncio.Event()

        async def writer() -> None:
            while not is_done.is_set():
                with suppress(ProducerFenced):
                    await write()
                await asyncio.sleep(5)  # another instance may have taken over

        async def write() -> None:
            async with AIOKafkaProducer(
                bootstrap_servers=run.broker.bootstrap, client_id="shop", transactional_id="orders"
            ) as producer:
                for number in range(3):
                    async with producer.transaction():
                        await producer.send_and_wait("orders", b"%d" % number)
                is_done.set()

        async def reader() -> None:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=run.broker.bootstrap, client_id="counter", isolation_level=isolation_level
            )
            async with consumer:
                consumer.assign([TopicPartition("orders", 0)])
                await consumer.seek_to_beginning()
                async for record in consumer:
                    run.processed(record)

        run.start(writer, "writer")
        reading = asyncio.get_running_loop().create_task(reader())
        await asyncio.wait_for(is_done.wait(), 300)
        await asyncio.sleep(5)
        reading.cancel()

    return program


# -- a buffer that a commit precedes -----------------------------------------------------------------------------------


def _buffering(*, commits_buffered: bool) -> Callable[[Run], Callable[[], object]]:
    def of(run: Run) -> Callable[[], object]:
        async def application() -> None:
            async with _consumer(run) as consumer:
                while True:
                    batches = await consumer.getmany(timeout_ms=200, max_records=3)
                    buffer = [record for batch in batches.values() for record in batch]
                    if commits_buffered:
                        await _commit(consumer)
                    await asyncio.sleep(_PAUSE_S)  # until the buffer is written
                    for record in buffer:
                        run.processed(record)
                    if buffer and not commits_buffered:
                        await _commit(consumer)

        return application

    return of


BUGS: Mapping[str, Bug] = {
    "commit-before-processing": Bug(
        "commits before it processes", _reading(_commits_first), _reading(_commits_last), [AtLeastOnce("orders")]
    ),
    "not-idempotent": Bug(
        "processes records again after a crash", _reading(_commits_last), _reading(_remembers), [ExactlyOnce("orders")]
    ),
    "own-retry": Bug(
        "sends a record again when the response was lost",
        _sending(is_idempotent=False),
        _sending(is_idempotent=True),
        [NoDuplicates("orders")],
    ),
    "latest": Bug(
        "starts at the end without a committed offset", _from("latest"), _from("earliest"), [AtLeastOnce("orders")]
    ),
    "read-uncommitted": Bug(
        "counts records of aborted transactions",
        _counting("read_uncommitted"),
        _counting("read_committed"),
        [ExactlyOnce("orders")],
    ),
    "buffer": Bug(
        "commits what is only in memory",
        _reading(_buffering(commits_buffered=True)),
        _reading(_buffering(commits_buffered=False)),
        [AtLeastOnce("orders")],
    ),
}
