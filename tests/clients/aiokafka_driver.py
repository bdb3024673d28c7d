"""The aiokafka driver: producers, consumers, groups. Admin calls are in aiokafka_admin.py."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import MessageSizeTooLargeError, ProducerFenced

from tests.clients.driver import TIMEOUT_S, Given, Member, Round, Row, Step, Verb
from tests.clients.login import of_python

# Members notice a rebalance early.
GROUP = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "heartbeat_interval_ms": 100,
    "partition_assignment_strategy": (RangePartitionAssignor,),
}


def in_loop(verb: Callable[[str, Given], Coroutine[Any, Any, list[Step]]]) -> Verb:
    """Return a verb that runs a coroutine function within the time limit."""

    @wraps(verb)
    def run(bootstrap: str, given: Given) -> list[Step]:
        return asyncio.run(asyncio.wait_for(verb(bootstrap, given), TIMEOUT_S))

    return run


async def send(producer: AIOKafkaProducer, topic: str, rows: list[Row], partitions: int = 1) -> None:
    """Produce the rows to the partitions in turn and wait until all are acknowledged."""
    sent = [
        await producer.send(
            topic, row.value, row.key, partition=number % partitions, timestamp_ms=row.timestamp, headers=row.headers
        )
        for number, row in enumerate(rows)
    ]
    await asyncio.gather(*sent)


async def produce(bootstrap: str, given: Given) -> list[Step]:
    producer = AIOKafkaProducer(
        **of_python(bootstrap),
        acks="all" if given.acks == "all" else int(given.acks),
        compression_type=None if given.compression == "none" else given.compression,
        enable_idempotence=given.idempotent,
    )
    async with producer:
        await send(producer, given.topic, given.rows, given.partitions)
    return [{"sent": len(given.rows)}]


async def read(bootstrap: str, given: Given) -> list[Step]:
    async with AIOKafkaConsumer(**of_python(bootstrap), isolation_level=given.isolation) as consumer:
        partition = TopicPartition(given.topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        records = [await consumer.getone() for _ in range(given.count)]
    return [{"rows": [Row(one.key, one.value, list(one.headers), one.timestamp) for one in records]}]


async def oversize(bootstrap: str, given: Given) -> list[Step]:
    async with AIOKafkaProducer(**of_python(bootstrap)) as producer:
        try:
            await producer.send_and_wait(given.topic, bytes(given.size), partition=0)
        except MessageSizeTooLargeError as error:
            return [{"error": error.errno}]
    return [{"error": 0}]


@asynccontextmanager
async def admin_of(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(**of_python(bootstrap))
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


async def until_true(call: Callable[[], Coroutine[Any, Any, bool]], wanted: bool) -> bool:
    """As `until`, for a coroutine function."""
    for _ in range(TIMEOUT_S * 7):
        if await call() == wanted:
            return wanted
        await asyncio.sleep(0.05)
    return not wanted


# -- transactions ------------------------------------------------------------------------------------------------------


async def end(producer: AIOKafkaProducer, one: Round) -> None:
    await (producer.commit_transaction() if one.end == "commit" else producer.abort_transaction())


async def transactions(bootstrap: str, given: Given) -> list[Step]:
    steps: list[Step] = []
    producer = AIOKafkaProducer(**of_python(bootstrap), transactional_id=given.transactional_id)
    async with producer:
        for one in given.rounds:
            await producer.begin_transaction()
            await send(producer, given.topic, one.rows)
            await end(producer, one)
            steps.append({"end": one.end})
    return steps


async def fence(bootstrap: str, given: Given) -> list[Step]:
    first = AIOKafkaProducer(**of_python(bootstrap), transactional_id=given.transactional_id)
    second = AIOKafkaProducer(**of_python(bootstrap), transactional_id=given.transactional_id)
    await first.start()
    try:
        await first.begin_transaction()
        await first.send_and_wait(given.topic, b"first", partition=0)
        async with second:
            try:
                await first.commit_transaction()
            except ProducerFenced:
                return [{"fenced": True}]
        return [{"fenced": False}]
    finally:
        await first.stop()


async def transactional_offsets(bootstrap: str, given: Given) -> list[Step]:
    partition = TopicPartition(given.topic, 0)
    consumer = AIOKafkaConsumer(given.topic, **of_python(bootstrap), group_id=given.group, **GROUP)
    producer = AIOKafkaProducer(**of_python(bootstrap), transactional_id=given.transactional_id)
    steps: list[Step] = []
    async with admin_of(bootstrap) as admin, consumer, producer:

        async def committed() -> bool:
            offsets = await admin.list_consumer_group_offsets(given.group)
            return partition in offsets and offsets[partition].offset == 3

        for ends, offset in (("commit", 3), ("abort", 6)):
            await producer.begin_transaction()
            for _ in range(3):
                record = await consumer.getone()
                await producer.send_and_wait(given.output, record.value, partition=0)
            await producer.send_offsets_to_transaction({partition: offset}, given.group)
            await end(producer, Round([], "commit" if ends == "commit" else "abort"))
            steps.append({f"after_{ends}": 3 if await until_true(committed, True) else None})
    return steps


# -- groups ------------------------------------------------------------------------------------------------------------


class Revocations(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types here
    """Counts revocations of partitions."""

    def __init__(self) -> None:
        self.count = 0

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        self.count += bool(revoked)

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        pass


class GroupMember:
    """A consumer that runs only while it is polled: all members of a test share one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, bootstrap: str, given: Given, instance_id: str | None) -> None:
        self._loop = loop
        self._revocations = Revocations()
        self._consumer = loop.run_until_complete(self._start(bootstrap, given, instance_id))

    async def _start(self, bootstrap: str, given: Given, instance_id: str | None) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            **of_python(bootstrap), group_id=given.group, group_instance_id=instance_id, **GROUP
        )
        consumer.subscribe([given.topic], listener=self._revocations)
        # Its start ends with its first assignment, which needs the other members to rejoin.
        await asyncio.wait_for(consumer.start(), TIMEOUT_S)
        return consumer

    def poll(self) -> None:
        self._loop.run_until_complete(self._consumer.getmany(timeout_ms=20))

    def assigned(self) -> set[int]:
        return {partition.partition for partition in self._consumer.assignment()}

    def revocations(self) -> int:
        return self._revocations.count

    def close(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())


def with_members(
    script: Callable[[Given, Callable[[str | None], Member]], Iterable[Step]],
) -> Callable[[str, Given], list[Step]]:
    """Return a verb that runs a script of group members."""

    def verb(bootstrap: str, given: Given) -> list[Step]:
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            return list(script(given, lambda instance_id: GroupMember(loop, bootstrap, given, instance_id)))

    return verb


async def resume(bootstrap: str, given: Given) -> list[Step]:
    async def some() -> list[str]:
        consumer = AIOKafkaConsumer(given.topic, **of_python(bootstrap), group_id=given.group, **GROUP)
        async with consumer:
            records = [await consumer.getone() for _ in range(5)]
            await consumer.commit({TopicPartition(given.topic, 0): records[-1].offset + 1})
        return [record.value.decode() for record in records]

    return [{"first": await some()}, {"resumed": await some()}]
