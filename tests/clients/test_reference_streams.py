"""The Streams runtime passes the same tests on our broker in virtual time and on any other broker in real time.

`python -m tests.client_against HOST:PORT` runs the tests on another broker. They use no faults and no journal;
tests/unit/sluice/streams covers faults.
"""

from collections import Counter

import pytest

from sluice.client.admin import ConfigResource, NewTopic, ResourceType
from sluice.client.metadata.cluster import TopicPartition
from sluice.streams.errors import StreamsException
from sluice.streams.processor import Context, Record
from sluice.streams.streams import State, Streams
from sluice.streams.topology import Topology
from tests.support.place import Place, until
from tests.support.streaming import Settings, latest_of, read, word_count, write

LINES = [b"to be or not to be", b"that is the question", b"to die to sleep", b"no more and by a sleep to say we end"]
LINE_PARTITIONS = 3


class Application:
    """A place, with topics and runtimes of one application."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self.id = place.group

    def topic(self, name: str) -> str:
        return f"{self._place.topic}-{name}"

    async def create(self, **partitions: int) -> None:
        async with self._place.admin() as admin:
            topics = [NewTopic(self.topic(name), count, 1) for name, count in partitions.items()]
            (await admin.create_topics(topics)).all()

    def streams(self, topology: Topology) -> Streams:
        given: Settings = {"application.id": self.id, "commit.interval.ms": 500}
        return Streams(topology, given | {"bootstrap.servers": self._place.bootstrap})

    def word_count(self) -> Streams:
        return self.streams(word_count(self.topic("lines"), self.topic("counts")))

    async def write(self, name: str, *values: bytes, partition: int | None = 0, key: bytes | None = None) -> None:
        await write(self._place.bootstrap, self.topic(name), *values, partition=partition, key=key)

    async def write_lines(self, lines: list[bytes]) -> None:
        for partition in range(LINE_PARTITIONS):
            await self.write("lines", *lines[partition::LINE_PARTITIONS], partition=partition)

    async def values(self, name: str) -> list[bytes | None]:
        return [record.value for record in await read(self._place.bootstrap, self.topic(name))]

    async def written(self, name: str, count: int) -> None:
        """Wait until a topic has `count` records."""
        async with self._place.consumer() as consumer:
            topic = self.topic(name)
            consumer.assign([TopicPartition(topic, index) for index in await consumer.partitions_for(topic)])
            await self._place.read(consumer, count)

    async def counted(self, lines: list[bytes]) -> None:
        """Wait until the words of these lines are counted. Each word occurs once, since each count is one record."""
        words = Counter(word for line in lines for word in line.split())
        await self.written("counts", words.total())
        records = await read(self._place.bootstrap, self.topic("counts"))
        assert {word: int(count) for word, count in latest_of(records).items()} == words
        assert len(records) == words.total()


async def running(*runtimes: Streams) -> None:
    """Wait until all tasks run."""
    await until(lambda: all(streams.state is State.RUNNING for streams in runtimes))


async def divided(first: Streams, second: Streams) -> None:
    """Wait until each of two runtimes has half of the tasks."""
    await until(lambda: len(first.tasks) == len(second.tasks) == 3 and not first.tasks.keys() & second.tasks.keys())
    await running(first, second)


class TestWords:
    async def test_each_word_is_counted_once(self, place: Place) -> None:
        application = Application(place)
        await application.create(lines=LINE_PARTITIONS, counts=2)
        async with application.word_count() as streams:
            await running(streams)
            assert [str(task_id) for task_id in streams.tasks] == ["0_0", "0_1", "0_2", "1_0", "1_1", "1_2"]
            await application.write_lines(LINES * 10)
            await application.counted(LINES * 10)
            metrics = streams.metrics()
            assert metrics["process-total"] == 10 * (len(LINES) + sum(len(line.split()) for line in LINES))
            assert metrics["task-created-total"] == 6
            assert metrics["alive-stream-threads"] == 1
        assert streams.state is State.NOT_RUNNING
        assert streams.metrics()["alive-stream-threads"] == 0

    async def test_words_pass_through_a_repartition_topic(self, place: Place) -> None:
        application = Application(place)
        await application.create(lines=LINE_PARTITIONS, counts=2)
        async with application.word_count() as streams:
            await running(streams)
            await application.write_lines(LINES)
            await application.counted(LINES)
        names = [f"{application.id}-words-repartition", f"{application.id}-counts-changelog"]
        async with place.admin() as admin:
            described = (await admin.describe_topics(names)).all()
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
            configs = (await admin.describe_configs(resources)).all()
        assert [len(described[name].partitions) for name in names] == [LINE_PARTITIONS] * 2
        found = [{one.name: one.value for one in configs[resource]} for resource in resources]
        assert [config["cleanup.policy"] for config in found] == ["delete", "compact"]
        words = [await read(place.bootstrap, name) for name in names]
        by_topic = [{record.key: record.partition for record in records} for records in words]
        assert by_topic[1] == by_topic[0], "a count is in the partition of its word"
        for records in words:
            assert len({(record.key, record.partition) for record in records}) == len(by_topic[1])

    async def test_counting_continues_after_a_restart(self, place: Place) -> None:
        application = Application(place)
        await application.create(lines=LINE_PARTITIONS, counts=2)
        for restarts in range(3):
            async with application.word_count() as streams:
                await running(streams)
                assert (streams.metrics()["restore-total"] > 0) == (restarts > 0)
                await application.write_lines(LINES)
                await application.counted(LINES * (restarts + 1))

    async def test_one_runtime_takes_over_when_the_other_closes(self, place: Place) -> None:
        """A task is committed before it moves, so no record is processed twice."""
        application = Application(place)
        await application.create(lines=LINE_PARTITIONS, counts=2)
        async with application.word_count() as first:
            await running(first)
            await application.write_lines(LINES)
            await application.counted(LINES)
            async with application.word_count() as second:
                await divided(first, second)
                assert second.metrics()["restore-total"] > 0, "its counts were not restored from the other runtime's"
                await application.write_lines(LINES)
                await application.counted(LINES * 2)
                assert second.metrics()["process-total"] > 0
            await until(lambda: len(first.tasks) == 6)
            await running(first)
            await application.write_lines(LINES)
            await application.counted(LINES * 3)


async def test_another_runtime_takes_over_the_tasks_of_a_failed_one(place: Place) -> None:
    def poisonous(ctx: Context, record: Record) -> None:
        if record.value == b"poison" and "mortal" in alive:
            raise ValueError("this kills")
        ctx.forward(record)

    alive = {"mortal"}
    application = Application(place)
    await application.create(**{"in": 1, "out": 1})
    topology = Topology()
    topology.source(application.topic("in")).process(poisonous).sink(application.topic("out"))
    async with application.streams(topology) as first:
        await running(first)
        await application.write("in", b"a", b"poison", b"b")
        expected = rf"processor poisonous failed at {application.topic('in')}-0 offset 1: ValueError"
        with pytest.raises(StreamsException, match=expected):
            await first.run()
        assert first.state is State.ERROR
        assert first.metrics()["failed-stream-threads"] == 1
        alive.clear()
        async with application.streams(topology) as second:
            await application.written("out", 3)
            await running(second)
    found = [value for value in await application.values("out") if value != b"a"]
    assert found == [b"poison", b"b"]


async def test_global_table_is_restored_at_the_start_and_then_updated(place: Place) -> None:
    def name(ctx: Context, record: Record) -> None:
        names = ctx.table("names")
        ctx.forward(record._replace(value=names.get(record.value or b"", b"nobody")))

    application = Application(place)
    await application.create(**{"in": 1, "out": 1, "names": 3})
    topology = Topology()
    topology.global_table("names", application.topic("names"))
    topology.source(application.topic("in")).process(name).sink(application.topic("out"))
    for key, value in ((b"1", b"Ann"), (b"2", b"Bob"), (b"3", b"Cy")):
        await application.write("names", value, partition=None, key=key)
    await application.write("in", b"1", b"2", b"4")
    async with application.streams(topology) as streams:
        await running(streams)
        await application.written("out", 3)
        await application.write("names", b"Dan", partition=None, key=b"4")
        written = 3
        while (await application.values("out"))[-1] != b"Dan":  # table updates and records are independent
            await application.write("in", b"4")
            written += 1
            await application.written("out", written)
        await application.write("in", b"3")
        await application.written("out", written + 1)
    found = await application.values("out")
    assert (found[:3], found[-2:]) == ([b"Ann", b"Bob", b"nobody"], [b"Dan", b"Cy"])
