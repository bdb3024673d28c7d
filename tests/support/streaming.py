"""Our Streams runtime and our broker in virtual time, and processors scripted by tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

from sluice import Broker
from sluice.client.admin import AdminClient
from sluice.client.config import Profile
from sluice.client.consumer import Consumer
from sluice.client.consumer.record import ConsumerRecord
from sluice.client.errors import TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer import Producer
from sluice.journal_events import Request
from sluice.streams.errors import TaskId
from sluice.streams.processor import Context, Record
from sluice.streams.streams import State, Streams
from sluice.streams.task import StreamTask
from sluice.streams.topology import Topology

Settings = dict[str, str | int]

APP = "app"
T00, T01 = TaskId(0, 0), TaskId(0, 1)


def now_ms() -> int:
    """Return the current time of the deadlines."""
    return int(asyncio.get_running_loop().time() * 1e3 + 1e-6)


@dataclass
class Flaky:
    """A processor that raises TimeoutException while `fails` is true."""

    fails: Callable[[Record], bool]
    attempts: list[tuple[bytes, int]] = field(default_factory=list)  # values and times
    __name__: str = "flaky"

    def __call__(self, ctx: Context, record: Record) -> None:
        self.attempts.append((record.value or b"", now_ms()))
        if self.fails(record):
            raise TimeoutException("a call of the application timed out")
        ctx.forward(record)

    def at_ms(self, value: bytes) -> list[int]:
        """Return the times of the attempts of a record."""
        return [at_ms for one, at_ms in self.attempts if one == value]


def split(ctx: Context, record: Record) -> None:
    for word in (record.value or b"").split():
        ctx.forward(record._replace(key=word, value=word))


def count(ctx: Context, record: Record) -> None:
    counts = ctx.store("counts")
    assert record.key is not None
    counts[record.key] = b"%d" % (int(counts.get(record.key, b"0")) + 1)
    ctx.forward(record._replace(value=counts[record.key]))


def word_count(lines: str = "lines", word_counts: str = "word-counts") -> Topology:
    """Forward records from one topic to another."""
    topology = Topology()
    topology.store("counts")
    words = topology.source(lines).process(split).repartition("words")
    words.process(count, stores=["counts"]).sink(word_counts)
    return topology


async def write(
    bootstrap: str, topic: str, *values: bytes, partition: int | None = 0, key: bytes | None = None
) -> None:
    """Produce records with a separate producer."""
    async with Producer({"bootstrap.servers": bootstrap, "linger.ms": 0}, random=Random(1)) as producer:
        for value in values:
            await producer.send(topic, value, partition=partition, key=key)


async def read(bootstrap: str, topic: str) -> list[ConsumerRecord]:
    """Return all records of a topic, by partition."""
    config = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    records: list[ConsumerRecord] = []
    async with Consumer(config, random=Random(1)) as consumer:
        partitions = [TopicPartition(topic, index) for index in await consumer.partitions_for(topic)]
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        while any([await consumer.position(one) < ends[one] for one in partitions]):
            records += await consumer.poll(1000)
    return sorted(records, key=lambda record: (record.partition, record.offset))


def latest_of(records: Iterable[ConsumerRecord]) -> dict[bytes, bytes]:
    """Return the last value of each key."""
    return {record.key: record.value for record in records if record.key and record.value}


@dataclass
class Stage:
    """A broker with topics."""

    broker: Broker
    profile: Profile
    seed: int
    began_ms: int

    @property
    def now_ms(self) -> int:
        """Return the time since the start of the stage."""
        return now_ms() - self.began_ms

    def streams(self, topology: Topology, config: Settings | None = None, *, seed: int | None = None) -> Streams:
        given: Settings = {
            "application.id": APP,
            "bootstrap.servers": self.broker.bootstrap,
            "commit.interval.ms": 1000,
            **(config or {}),
        }
        return Streams(topology, given, profile=self.profile, random=Random(self.seed if seed is None else seed))

    async def running(self, streams: Streams) -> None:
        """Wait until all tasks run."""
        await self.broker.wait_for(lambda: streams.state is State.RUNNING, timeout_s=120)

    async def write(self, topic: str, *values: bytes, partition: int | None = 0, key: bytes | None = None) -> None:
        await write(self.broker.bootstrap, topic, *values, partition=partition, key=key)

    async def read(self, topic: str) -> list[ConsumerRecord]:
        return await read(self.broker.bootstrap, topic)

    async def latest(self, topic: str) -> dict[bytes, bytes]:
        return latest_of(await self.read(topic))

    async def committed(self, topic: str = "in") -> dict[int, int]:
        """Return the application's committed offsets, by partition."""
        async with AdminClient({"bootstrap.servers": self.broker.bootstrap}, random=Random(1)) as admin:
            offsets = await admin.list_consumer_group_offsets(APP)
        return {
            partition.partition: offset.offset
            for partition, offset in offsets.items()
            if partition.topic == topic and offset is not None
        }

    def requests(self, api: str, client: str = "") -> list[Request]:
        """Return the requests of one API from clients whose id has this suffix."""
        return [
            one for one in self.broker.journal.requests(api=api) if one.client_id and one.client_id.endswith(client)
        ]


def task_of(streams: Streams, task_id: TaskId) -> StreamTask:
    assert streams._stream_thread is not None, "it runs"
    return streams._stream_thread.tasks.tasks[task_id]


def deadlines(streams: Streams) -> dict[str, int | None]:
    """Return the deadlines of all tasks."""
    return {str(task_id): task_of(streams, task_id).timeout.deadline_ms for task_id in streams.tasks}


@asynccontextmanager
async def streaming(
    topics: Mapping[str, int] | None = None,
    *,
    broker_config: dict[str, str | float] | None = None,
    brokers: int = 1,
    seed: int = 0,
    profile: Profile = "kafka",
) -> AsyncIterator[Stage]:
    """Start a broker that has these topics and partition counts."""
    config: dict[str, str | float] = {"group.initial.rebalance.delay.ms": 0, **(broker_config or {})}
    async with Broker(brokers, config=config, seed=seed) as broker:
        for topic, partitions in (topics or {"in": 2, "out": 2}).items():
            await broker.cluster.create_topic(topic, partitions)
        yield Stage(broker, profile, seed, now_ms())
