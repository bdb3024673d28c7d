"""Complete Streams applications against real brokers in virtual time, with injected failures.

tests/clients/test_reference_streams.py covers behaviour that any broker shows.
"""

import asyncio
import logging
import re
from collections import Counter

import pytest

from sluice.client.admin import AdminClient, ConfigResource, ResourceType
from sluice.errors import ConfigError
from sluice.streams.errors import StreamsException, TopologyException
from sluice.streams.processor import Context, Processor, Record
from sluice.streams.streams import State, Streams
from sluice.streams.topology import Topology
from tests.support.streaming import APP, Flaky, Settings, Stage, split, streaming, word_count

LINES = [b"to be or not to be", b"that is the question", b"to die to sleep", b"no more and by a sleep to say we end"]
WORDS: dict[str, int] = {"lines": 3, "word-counts": 2}


def counted(lines: list[bytes]) -> dict[bytes, int]:
    return dict(Counter(word for line in lines for word in line.split()))


async def counts(stage: Stage) -> dict[bytes, int]:
    return {word: int(times) for word, times in (await stage.latest("word-counts")).items()}


async def write_lines(stage: Stage, lines: list[bytes]) -> None:
    for number, line in enumerate(lines):
        await stage.write("lines", line, partition=number % 3)


OUTAGES = {"for 5 s": (5, 0), "for 60 s": (60, 0), "for 200 s, longer than the delivery timeout": (200, 3)}


@pytest.mark.parametrize(("away_s", "revived"), OUTAGES.values(), ids=OUTAGES)
async def test_no_word_is_lost_in_a_broker_outage(away_s: int, revived: int) -> None:
    async with streaming(WORDS, seed=away_s) as stage:
        before, meanwhile = LINES * 5, LINES * 3
        async with stage.streams(word_count()) as streams:
            await stage.running(streams)
            fault = stage.broker.faults.add("black-hole", api="Produce", client_id="*-producer")
            await write_lines(stage, before)
            await stage.broker.wait_for(fault)  # uncommitted records are in flight
            await stage.broker.cluster.stop(1)
            fault.remove()
            await asyncio.sleep(away_s)
            await stage.broker.cluster.start(1)
            await write_lines(stage, meanwhile)
            await asyncio.sleep(40)
            assert streams.state is State.RUNNING
            assert streams.metrics()["task-closed-total"] == revived, "tasks with expired records restart"
        found, expected = await counts(stage), counted(before + meanwhile)
        assert found.keys() == expected.keys()
        assert all(found[word] >= times for word, times in expected.items()), "at least once"
        assert revived or found == expected, "late deliveries are not duplicated"


async def test_topology_may_have_only_global_tables() -> None:
    async with streaming({"names-topic": 1}) as stage:
        topology = Topology()
        topology.global_table("names", "names-topic")
        async with stage.streams(topology) as streams:
            assert streams.state is State.RUNNING
            assert streams.tasks == {}
            await asyncio.sleep(1)
        assert stage.requests("JoinGroup") == []


async def test_internal_topics_are_created_with_their_settings() -> None:
    async with streaming(WORDS, brokers=2) as stage:
        async with stage.streams(word_count(), {"topic.min.insync.replicas": 1, "replication.factor": 2}) as streams:
            await stage.running(streams)
        async with AdminClient({"bootstrap.servers": stage.broker.bootstrap}) as admin:
            names = [f"{APP}-words-repartition", f"{APP}-counts-changelog"]
            described = (await admin.describe_topics(names)).all()
            assert [len(described[name].partitions) for name in names] == [3, 3]
            assert [len(described[name].partitions[0].replica_nodes) for name in names] == [2, 2]
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
            configs = (await admin.describe_configs(resources)).all()
        found = [{one.name: one.value for one in configs[resource]} for resource in resources]
        assert [config["cleanup.policy"] for config in found] == ["delete", "compact"]
        assert found[0]["retention.ms"] == "-1"
        assert [config["min.insync.replicas"] for config in found] == ["1", "1"]


async def test_missing_source_topic_ends_the_application() -> None:
    async with streaming() as stage:
        topology = Topology()
        topology.source("in", "not-there").sink("out")
        async with stage.streams(topology) as streams:
            with pytest.raises(StreamsException, match="source topic not-there does not exist"):
                await streams.run()


async def test_internal_topic_with_a_wrong_partition_count_ends_the_application() -> None:
    async with streaming({**WORDS, f"{APP}-counts-changelog": 7}) as stage, stage.streams(word_count()) as streams:
        with pytest.raises(StreamsException, match=f"topic {APP}-counts-changelog: expected 3 partitions, got 7"):
            await streams.run()


async def test_processor_class_has_one_object_per_task() -> None:
    async with streaming() as stage:
        made: list[Processor] = []

        class Numbering(Processor):
            def __init__(self, ctx: Context) -> None:
                super().__init__(ctx)
                made.append(self)
                self.number = 0
                self.is_closed = False

            def process(self, record: Record) -> None:
                self.number += 1
                place = f"{self.ctx.task_id} {self.number} {self.ctx.metadata.topic}-{self.ctx.metadata.offset}"
                self.ctx.forward(record._replace(value=place.encode()))

            def close(self) -> None:
                self.is_closed = True

        topology = Topology()
        topology.source("in").process(Numbering).sink("out", partitioner=lambda _record, _partitions: 0)
        async with stage.streams(topology) as streams:
            await stage.running(streams)
            await stage.write("in", b"a", b"b", partition=0)
            await stage.write("in", b"c", partition=1)
            await asyncio.sleep(3)
        assert len(made) == 2
        assert all(isinstance(one, Numbering) and one.is_closed for one in made)
        assert {record.value for record in await stage.read("out")} == {b"0_0 1 in-0", b"0_0 2 in-1", b"0_1 1 in-0"}


async def test_records_of_two_topics_are_processed_in_timestamp_order() -> None:
    async with streaming({"left": 1, "right": 1, "out": 1}) as stage:
        topology = Topology()
        left, right = topology.source("left"), topology.source("right")
        left.process(split, right).sink("out")
        for topic, value in (("left", b"1"), ("right", b"2"), ("right", b"3"), ("left", b"4"), ("right", b"5")):
            await stage.write(topic, value)
            await asyncio.sleep(1)
        async with stage.streams(topology) as streams:
            await stage.running(streams)
            await asyncio.sleep(5)
        assert [record.value for record in await stage.read("out")] == [b"1", b"2", b"3", b"4", b"5"]


async def test_slow_task_is_paused_when_its_buffer_is_full() -> None:
    async with streaming({"in": 1, "out": 1}) as stage:
        flaky = Flaky(lambda record: record.value == b"0" and len(flaky.attempts) < 100)
        topology = Topology()
        topology.source("in").process(flaky).sink("out")
        await stage.write("in", *(b"%d" % number for number in range(50)))
        config: Settings = {"buffered.records.per.partition": 10, "main.consumer.max.poll.records": 5}
        async with stage.streams(topology, config) as streams:
            await stage.running(streams)
            await asyncio.sleep(5)
            assert streams._stream_thread is not None
            (task,) = streams._stream_thread.tasks.tasks.values()
            assert task.buffered == 15, "14 buffered records exceed ten, 9 do not; one is being processed"
            await asyncio.sleep(15)
        assert [record.value for record in await stage.read("out")] == [b"%d" % number for number in range(50)]


async def test_thread_removed_from_the_group_rejoins(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="sluice.streams")
    async with streaming(WORDS) as stage:
        async with stage.streams(word_count(), {"session.timeout.ms": 6000}) as streams:
            await stage.running(streams)
            await write_lines(stage, LINES)
            with stage.broker.faults.add("black-hole", api="Heartbeat"):
                await asyncio.sleep(20)
            await write_lines(stage, LINES)
            await asyncio.sleep(30)
            assert streams.state is State.RUNNING
        found, expected = await counts(stage), counted(LINES * 2)
        assert all(found[word] >= times for word, times in expected.items())
    assert any(message.startswith("the group has removed this thread, which rejoins") for message in caplog.messages)


async def test_exception_in_the_with_block_closes_at_once() -> None:
    async with streaming() as stage:
        flaky = Flaky(lambda _record: True)
        topology = Topology()
        topology.source("in").process(flaky).sink("out")
        streams, began_ms = stage.streams(topology), 0

        async def fail() -> None:
            nonlocal began_ms
            async with streams:
                await stage.running(streams)
                await stage.broker.cluster.stop(1)
                began_ms = stage.now_ms
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert stage.now_ms - began_ms < 31_000, "no longer than leaving the group takes"
        assert streams.state is State.NOT_RUNNING


async def test_application_starts_once_and_can_be_closed_twice() -> None:
    async with streaming(WORDS) as stage:
        streams = stage.streams(word_count())
        async with streams:
            await stage.running(streams)
            await streams.close()
            await streams.run()
        with pytest.raises(StreamsException, match="a runtime can be started only once"):
            await streams.__aenter__()


async def test_close_aborts_after_its_timeout() -> None:
    async with streaming(WORDS) as stage:
        async with stage.streams(word_count()) as streams:
            await stage.running(streams)
            stage.broker.faults.add("black-hole", api="Produce", client_id="*-producer")
            await write_lines(stage, LINES)
            await asyncio.sleep(5)  # it waits for deliveries, which takes two minutes
            began_ms = stage.now_ms
            await streams.close(timeout_ms=3000)
            assert 3000 <= stage.now_ms - began_ms < 4000
            assert streams.state is State.NOT_RUNNING
        assert await stage.committed("lines") == {}


def test_invalid_application_is_rejected_before_connecting() -> None:
    with pytest.raises(TopologyException, match="the topology has no source"):
        Streams(Topology(), {"application.id": "a", "bootstrap.servers": "a:1"})
    with pytest.raises(ConfigError, match=re.escape("streams: application.id is missing")):
        Streams(word_count(), {"bootstrap.servers": "a:1"})
