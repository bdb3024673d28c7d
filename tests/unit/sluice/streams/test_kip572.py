"""KIP-572, `task.timeout.ms`: the testable statements, in virtual time with real brokers.

Each test name has a statement's number; where Kafka and the KIP differ, there is a test for each.
"""

import asyncio
import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import pytest

from sluice import testing
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import BlackHole
from sluice.client.config import Profile
from sluice.client.errors import TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.clock import LoopClock
from sluice.streams.errors import StreamsException
from sluice.streams.global_table import GlobalSettings, GlobalThread
from sluice.streams.processor import Record
from sluice.streams.streams import State
from sluice.streams.topology import Topology
from tests.support.streaming import APP, T00, Flaky, Settings, deadlines, now_ms, streaming, word_count
from tests.support.streaming_fakes import FakeConsumer

# `poll.ms`: the longest time between two polls of a thread.
POLL_MS = 100


def through(flaky: Flaky) -> Topology:
    topology = Topology()
    topology.source("in").process(flaky).sink("out")
    return topology


def fails_for(ms: int, *values: bytes) -> Flaky:
    """Fail each of these records for this time from its first attempt."""

    def fails(record: Record) -> bool:
        value = record.value or b""
        return (not values or value in values) and now_ms() - flaky.at_ms(value)[0] < ms

    flaky = Flaky(fails)
    return flaky


FOR_EVER = 10**9


async def test_kip572_01_first_timeout_sets_a_deadline_and_the_task_continues(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="sluice.streams")
    async with streaming() as stage:
        flaky = fails_for(3000)
        await stage.write("in", b"a")
        async with stage.streams(through(flaky), {"task.timeout.ms": 5000}) as streams:
            await stage.broker.wait_for(lambda: flaky.attempts)
            first_ms = flaky.attempts[0][1]
            assert deadlines(streams) == {"0_0": first_ms + 5000, "0_1": None}
            await asyncio.sleep(10)
            assert streams.state is State.RUNNING
        gaps = [later - earlier for earlier, later in pairwise(flaky.at_ms(b"a"))]
        assert len(gaps) >= 3000 // POLL_MS
        assert max(gaps) <= POLL_MS + 1, "retried in the next iteration"
        assert [record.value for record in await stage.read("out")] == [b"a"]
    assert caplog.messages[0] == "task 0_0: timeout of a client; it will be retried, for 5000 ms at least"


async def test_kip572_01_warning_names_the_client_call(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="sluice.streams")
    async with streaming(broker_config={"auto.create.topics.enable": "false"}) as stage:
        topology = Topology()
        topology.source("in").sink("not-there", partitioner=lambda _record, partitions: partitions - 1)
        await stage.write("in", b"a")
        async with stage.streams(topology, {"producer.max.block.ms": 1000}):
            await asyncio.sleep(3)
    warning = "task 0_0: timeout of Producer.partitions_for not-there; it will be retried, for 300000 ms at least"
    assert warning in caplog.messages


async def test_kip572_02_progress_clears_the_deadline_and_a_later_timeout_sets_a_new_one() -> None:
    async with streaming() as stage:
        flaky = fails_for(4000, b"a", b"c")
        async with stage.streams(through(flaky), {"task.timeout.ms": 5000}) as streams:
            await stage.write("in", b"a", b"b")
            await asyncio.sleep(6)
            assert deadlines(streams)["0_0"] is None, "after a and b"
            await stage.write("in", b"c")
            await asyncio.sleep(3)
            assert deadlines(streams)["0_0"] == flaky.at_ms(b"c")[0] + 5000
            await asyncio.sleep(3)
            assert deadlines(streams)["0_0"] is None
            assert streams.state is State.RUNNING
        assert [record.value for record in await stage.read("out")] == [b"a", b"b", b"c"]


async def test_kip572_03_first_timeout_after_the_deadline_fails_and_the_member_leaves() -> None:
    async with streaming() as stage:
        flaky = fails_for(FOR_EVER)
        await stage.write("in", b"a")
        async with stage.streams(through(flaky), {"task.timeout.ms": 5000}) as streams:
            with pytest.raises(StreamsException) as raised:
                await streams.run()
            assert streams.state is State.ERROR
            await asyncio.sleep(1)
            assert len(stage.requests("LeaveGroup")) == 1, "without waiting for the application to close it"
        first_ms, last_ms = flaky.at_ms(b"a")[0], flaky.at_ms(b"a")[-1]
        assert flaky.at_ms(b"a")[-2] <= first_ms + 5000 < last_ms <= first_ms + 5000 + POLL_MS + 1
        assert raised.value.task_id == T00
        without_ms = last_ms - first_ms
        assert str(raised.value).startswith(f"task 0_0: {without_ms} ms without progress (task.timeout.ms=5000): ")
        assert await stage.committed() == {}


TIMEOUT_0 = {"Kafka allows one more attempt": ("kafka", 2), "the KIP allows none": ("kip", 1)}


@pytest.mark.parametrize(("profile", "attempts"), TIMEOUT_0.values(), ids=TIMEOUT_0)
async def test_kip572_04_timeout_of_0(profile: Profile, attempts: int) -> None:
    async with streaming(profile=profile) as stage:
        flaky = fails_for(FOR_EVER)
        await stage.write("in", b"a")
        async with stage.streams(through(flaky), {"task.timeout.ms": 0}) as streams:
            with pytest.raises(StreamsException, match="task 0_0: "):
                await streams.run()
        assert len(flaky.attempts) == attempts


async def test_kip572_05_failing_task_does_not_delay_others() -> None:
    async with streaming() as stage:
        flaky = fails_for(FOR_EVER, b"stuck")
        async with stage.streams(through(flaky)) as streams:
            await stage.running(streams)
            await stage.write("in", b"stuck", partition=0)
            for number in range(10):
                await stage.write("in", b"%d" % number, partition=1)
                await asyncio.sleep(2)
                assert await stage.committed() == {1: number + 1}
            assert deadlines(streams)["0_0"] is not None
            assert deadlines(streams)["0_1"] is None
        assert len(stage.requests("OffsetCommit")) >= 10


async def test_kip572_06_same_record_is_retried_and_none_is_skipped() -> None:
    async with streaming() as stage:
        flaky = fails_for(20_000, b"2")
        async with stage.streams(through(flaky)) as streams:
            await stage.running(streams)
            await stage.write("in", b"1", b"2", b"3")
            for _ in range(9):
                await asyncio.sleep(2)
                assert await stage.committed() == {0: 1}, "the failing record is not committed"
                assert {value for value, _ in flaky.attempts} == {b"1", b"2"}
            await asyncio.sleep(10)
            assert await stage.committed() == {0: 3}
        assert [record.value for record in await stage.read("out")] == [b"1", b"2", b"3"]


async def test_kip572_07_slow_processing_without_a_timeout_never_fails() -> None:
    async with streaming({"in": 2, "slow": 2}) as stage:
        topology = Topology()
        topology.source("in").sink("slow", partitioner=lambda _record, _partitions: 0)
        async with stage.streams(topology, {"task.timeout.ms": 1000, "producer.max.block.ms": 60_000}) as streams:
            await stage.running(streams)
            stage.broker.faults.add(Delay(ms=20_000), api="Metadata", client_id="*-producer")
            await stage.write("in", b"a")
            await asyncio.sleep(15)
            assert deadlines(streams) == {"0_0": None, "0_1": None}
            await asyncio.sleep(15)
            assert streams.state is State.RUNNING
        assert [record.value for record in await stage.read("slow")] == [b"a"]


async def test_kip572_08_shared_call_counts_for_all_its_tasks() -> None:
    async with streaming({"lines": 3, "word-counts": 1}) as stage:
        fault = stage.broker.faults.add(BlackHole(), api="ListOffsets", client_id="*-admin")
        config: Settings = {"admin.default.api.timeout.ms": 2000, "admin.request.timeout.ms": 1000}
        async with stage.streams(word_count(), config) as streams:
            await stage.broker.wait_for(lambda: any(deadlines(streams).values()))
            found = deadlines(streams)
            assert found["1_0"] == found["1_1"] == found["1_2"]
            assert now_ms() + 299_980 <= (found["1_0"] or 0) <= now_ms() + 300_000
            assert found["0_0"] is None, "no store in its subtopology"
            fault.remove()
            await stage.running(streams)
            assert set(deadlines(streams).values()) == {None}


COMMITS: Settings = {"consumer.default.api.timeout.ms": 3000, "consumer.request.timeout.ms": 1000}


async def test_kip572_09_commit_timeout_counts_for_every_task_in_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="sluice.streams")
    async with streaming({"in": 3, "out": 1}) as stage, stage.streams(through(fails_for(0)), COMMITS) as streams:
        await stage.running(streams)
        fault = stage.broker.faults.add(BlackHole(), api="OffsetCommit")
        await stage.write("in", b"a", partition=0)
        await stage.write("in", b"b", partition=1)
        await stage.broker.wait_for(lambda: any(deadlines(streams).values()))
        found = deadlines(streams)
        assert found["0_0"] == found["0_1"]
        assert now_ms() + 299_980 <= (found["0_0"] or 0) <= now_ms() + 300_000
        assert found["0_2"] is None, "nothing to commit"
        fault.remove()
        await asyncio.sleep(10)
        assert deadlines(streams) == {"0_0": None, "0_1": None, "0_2": None}
        assert await stage.committed() == {0: 1, 1: 1}
    for task in ("0_0", "0_1"):
        assert f"task {task}: timeout of Consumer.commit; it will be retried, for 300000 ms at least" in caplog.messages


async def test_kip572_09_commit_failing_past_the_deadline_ends_the_thread() -> None:
    async with streaming() as stage:
        stage.broker.faults.add(BlackHole(), api="OffsetCommit")
        await stage.write("in", b"a")
        async with stage.streams(through(fails_for(0)), {**COMMITS, "task.timeout.ms": 10_000}) as streams:
            with pytest.raises(StreamsException, match=r"task 0_0: 1\d{4} ms without progress .*Consumer.commit"):
                await streams.run()


class GlobalCalls(FakeConsumer):
    """A global consumer whose `partitions_for` takes one second and fails until this time."""

    def __init__(self, until_ms: int) -> None:
        super().__init__()
        self.calls_ms: list[int] = []
        self._until_ms = until_ms
        self._began_ms = now_ms()
        self.ends[TopicPartition("names-topic", 0)] = 0

    async def partitions_for(self, topic: str) -> Sequence[int]:
        self.calls_ms.append(now_ms() - self._began_ms)
        await asyncio.sleep(1)
        if now_ms() - self._began_ms < self._until_ms:
            raise TimeoutException(f"topic {topic} was not known in time")
        return await super().partitions_for(topic)


def restoring(profile: Profile, task_timeout_ms: int, until_ms: int = FOR_EVER) -> tuple[list[int], str]:
    """Return the call times of the global thread, and its error."""

    async def main() -> tuple[list[int], str]:
        consumer = GlobalCalls(until_ms)
        settings = GlobalSettings(task_timeout_ms, 100, 100, 30_000, profile)
        thread = GlobalThread({"names": "names-topic"}, consumer, settings, LoopClock(asyncio.get_running_loop()))  # type: ignore[arg-type]  # a fake
        try:
            await thread.restore()
        except StreamsException as error:
            return consumer.calls_ms, str(error)
        return consumer.calls_ms, ""

    return testing.run(main())


GLOBAL_THREADS = {
    "Kafka retries at once": ("kafka", [0, 1000, 2000, 3000, 4000], 4000),
    "the KIP waits for retry.backoff.ms": ("kip", [0, 1100, 2200, 3300, 4400], 4400),
}


@pytest.mark.parametrize(("profile", "calls_ms", "without_ms"), GLOBAL_THREADS.values(), ids=GLOBAL_THREADS)
def test_kip572_10_global_thread_fails_at_its_deadline(profile: Profile, calls_ms: list[int], without_ms: int) -> None:
    found, error = restoring(profile, 4000)
    assert found == calls_ms
    assert error == (
        f"global tables: {without_ms} ms without progress (task.timeout.ms=4000): "
        "Consumer.partitions_for names-topic: topic names-topic was not known in time"
    )
    assert restoring(profile, 4001)[0] == ([*calls_ms, 5000] if profile == "kafka" else calls_ms)


@pytest.mark.parametrize("profile", ["kafka", "kip"])
def test_kip572_10_global_thread_fails_at_once_with_a_timeout_of_0(profile: Profile) -> None:
    found, error = restoring(profile, 0)
    assert found == [0]
    assert "no retry" in error


def test_kip572_10_successful_call_clears_the_deadline() -> None:
    assert restoring("kafka", 4000, until_ms=3500) == ([0, 1000, 2000, 3000], "")


async def test_kip572_10_application_does_not_start_without_its_global_tables() -> None:
    async with streaming({"lines": 1, "names-topic": 1}) as stage:
        topology = word_count()
        topology.global_table("names", "names-topic")
        stage.broker.faults.add(BlackHole(), api="Metadata", client_id="*-global-consumer")
        streams = stage.streams(topology, {"task.timeout.ms": 0, "global.consumer.default.api.timeout.ms": 2000})
        with pytest.raises(StreamsException, match=r"Consumer.partitions_for names-topic.*no retry"):
            await streams.__aenter__()
        assert streams.state is State.ERROR
        assert stage.requests("JoinGroup") == []


@pytest.mark.parametrize("profile", ["kafka", "kip"])
async def test_kip572_11_leader_stops_at_half_of_the_poll_interval(profile: Profile) -> None:
    async with streaming({"lines": 1, "word-counts": 1}, profile=profile) as stage:
        stage.broker.faults.add(Error("REQUEST_TIMED_OUT"), api="CreateTopics")
        config: Settings = {"max.poll.interval.ms": 20_000, "admin.retries": 0, "client.id": f"{APP}-1"}
        async with stage.streams(word_count(), config) as streams:
            await asyncio.sleep(25)
            assert streams.state is State.REBALANCING
            joins = [request.received_ns / 1e6 for request in stage.requests("JoinGroup", "-consumer")]
            rounds = [request.received_ns / 1e6 for request in stage.requests("CreateTopics", "-admin")]
            apis = [request.api for request in stage.broker.journal.requests() if request.client_id == f"{APP}-1-admin"]
        first = [at_ms for at_ms in rounds if at_ms < joins[2]]
        assert all(99 <= later - earlier <= 110 for earlier, later in pairwise(first)), "constant backoff"
        assert joins[1] + 9800 <= first[-1] <= joins[1] + 10_000
        assert joins[1] + 10_000 <= joins[2] <= joins[1] + 10_300, "then the leader rejoins"
        calls = [api for api in apis if api in ("DescribeTopicPartitions", "CreateTopics")]
        first_round = calls.index("CreateTopics")
        assert calls[first_round - 1 : first_round + 7] == ["DescribeTopicPartitions", "CreateTopics"] * 4


async def test_kip572_12_delivery_timeout_corrupts_the_task_without_a_task_deadline() -> None:
    async with streaming({"lines": 1, "word-counts": 1}) as stage:
        config: Settings = {
            "task.timeout.ms": 0,
            "producer.delivery.timeout.ms": 3000,
            "producer.request.timeout.ms": 1000,
        }
        config["producer.linger.ms"] = 0
        async with stage.streams(word_count(), config) as streams:
            await stage.running(streams)
            fault = stage.broker.faults.add(BlackHole(), api="Produce", client_id="*-producer", topic="word-counts")
            await stage.write("lines", b"to be or not to be")
            seen: set[int | None] = set()
            for _ in range(200):
                await asyncio.sleep(0.1)
                seen |= set(deadlines(streams).values())
            assert seen == {None}, "no task deadline was set"
            assert streams.metrics()["task-closed-total"] >= 2, "closed without a commit and recreated"
            assert streams.metrics()["restore-total"] > 0
            fault.remove()
            await asyncio.sleep(10)
            assert streams.state is State.RUNNING
        counts = {key: int(value) for key, value in (await stage.latest("word-counts")).items()}
        assert counts.keys() == {b"to", b"be", b"or", b"not"}
        assert all(counts[word] >= times for word, times in {b"to": 2, b"be": 2, b"or": 1, b"not": 1}.items())


BLOCKED_SENDS = {
    "Kafka reports it to the callback too": ("kafka", "corrupted"),
    "the KIP counts it as any timeout": ("kip", "its time runs"),
}


@pytest.mark.parametrize(("profile", "what"), BLOCKED_SENDS.values(), ids=BLOCKED_SENDS)
async def test_kip572_12_blocked_send_times_out(profile: Profile, what: Literal["corrupted", "its time runs"]) -> None:
    async with streaming({"in": 1}, broker_config={"auto.create.topics.enable": "false"}, profile=profile) as stage:
        topology = Topology()
        topology.source("in").sink("not-there")
        await stage.write("in", b"a")
        config: Settings = {"producer.max.block.ms": 1000, "task.timeout.ms": 60_000}
        async with stage.streams(topology, config) as streams:
            seen: set[int | None] = set()
            for _ in range(100):
                await asyncio.sleep(0.1)
                seen |= set(deadlines(streams).values())
            assert (streams.metrics()["task-closed-total"] > 0) == (what == "corrupted")
            assert (seen != {None}) == (what == "its time runs")
            assert streams.state is State.RUNNING


async def test_kip572_13_retries_has_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="sluice.client")
    async with streaming() as stage:
        flaky = fails_for(3000)
        await stage.write("in", b"a")
        async with stage.streams(through(flaky), {"retries": 0}) as streams:
            await asyncio.sleep(8)
            assert streams.state is State.RUNNING
            assert await stage.committed() == {0: 1}
        assert len(flaky.attempts) > 20
    assert "retries has no effect; set task.timeout.ms, or producer.retries and admin.retries" in caplog.messages
