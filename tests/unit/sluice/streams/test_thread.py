"""The stream thread's loop: states, survived errors, and the work between two polls."""

import asyncio
from itertools import pairwise

import pytest

from sluice.client.consumer.record import ConsumerRecord
from sluice.client.errors import KafkaException, TopicAuthorizationException
from sluice.client.metadata.cluster import TopicPartition
from sluice.streams.errors import StreamsException, TaskCorruptedException, TaskId, TaskMigratedException
from sluice.streams.thread import StreamThread, ThreadState
from tests.support.streaming import now_ms
from tests.support.streaming_fakes import IN0, FakeConsumer, Script, clock, record


class FakeTasks(Script):
    """Tasks with `left` records at each poll, each taking a fixed time."""

    def __init__(self) -> None:
        super().__init__()
        self.is_all_running = True
        self.left = 0
        self.takes_ms = 0
        self.most: list[int] = []

    def resume_polling(self) -> None: ...

    def add_records(self, records: list[ConsumerRecord]) -> None:
        self.left += len(records)

    async def check_restoration(self) -> None:
        self.called("check_restoration")

    async def process(self, most: int) -> int:
        self.called("process")
        self.most.append(most)
        done = min(most, self.left)
        self.left -= done
        await asyncio.sleep(self.takes_ms * done / 1e3)
        return done

    async def commit_all(self) -> bool:
        self.called("commit_all")
        return True

    def handle_assignment(self, partitions: set[TopicPartition]) -> None:
        self.called("handle_assignment")

    async def handle_revocation(self, partitions: set[TopicPartition]) -> None:
        self.called("handle_revocation")

    def handle_lost_all(self) -> None:
        self.called("handle_lost_all")

    async def handle_corruption(self, error: TaskCorruptedException) -> None:
        self.called("handle_corruption")

    async def shutdown(self, *, commits: bool) -> None:
        self.called(f"shutdown {'with' if commits else 'without'} a commit")


class Looping:
    """A thread with a scripted consumer and scripted tasks."""

    def __init__(self, *, commit_interval_ms: int = 10**9, max_poll_interval_ms: int = 300_000) -> None:
        self.consumer = FakeConsumer()
        self.tasks = FakeTasks()
        self.states: list[str] = []
        self.thread = StreamThread(
            ["in"],
            self.consumer,  # type: ignore[arg-type]  # a fake
            self.tasks,  # type: ignore[arg-type]  # as much of a TaskManager as the loop uses
            clock(),
            poll_ms=100,
            commit_interval_ms=commit_interval_ms,
            max_poll_interval_ms=max_poll_interval_ms,
            on_state=lambda state: self.states.append(state.value),
        )

    async def run(self, seconds: float) -> None:
        """Run the thread and stop it after this time."""
        running = asyncio.ensure_future(self.thread.run())
        await asyncio.sleep(seconds)
        self.thread.stop()
        await running


async def test_thread_polls_until_stopped_and_then_commits() -> None:
    stage = Looping()
    await stage.run(1)
    assert stage.thread.polls in (10, 11)
    assert stage.consumer.calls[0] == "subscribe in"
    assert stage.tasks.calls[-1] == "shutdown with a commit"
    assert stage.states == ["starting", "pending shutdown", "dead"]
    assert stage.thread.state is ThreadState.DEAD


async def test_thread_is_running_when_all_its_tasks_are() -> None:
    stage = Looping()
    stage.tasks.is_all_running = False
    running = asyncio.ensure_future(stage.thread.run())
    await asyncio.sleep(0.5)
    await stage.consumer.listener.on_partitions_assigned([IN0])
    await asyncio.sleep(0.5)
    assert stage.states == ["starting", "partitions assigned"]
    stage.tasks.is_all_running = True
    await asyncio.sleep(0.5)
    await stage.consumer.listener.on_partitions_revoked([IN0])
    await stage.consumer.listener.on_partitions_lost([IN0])
    await asyncio.sleep(0.5)
    assert stage.states[2:] == ["running", "partitions revoked"]
    stage.thread.stop()
    await running


async def test_records_per_task_grow_by_one_and_halve_after_a_commit() -> None:
    stage = Looping(commit_interval_ms=1000)
    stage.tasks.takes_ms = 100
    stage.consumer.records = [[record()] * 25]
    await stage.run(4)
    assert stage.tasks.most[:8] == [1, 2, 3, 4, 5, 2, 3, 4], "the commit was due after 1+2+3+4+5 records of 100 ms"


async def test_thread_polls_before_half_of_the_poll_interval() -> None:
    stage = Looping(max_poll_interval_ms=2000)
    stage.tasks.takes_ms = 100
    polls: list[int] = []
    stage.consumer.records = [[record()] * 100]
    poll = stage.consumer.poll

    async def polled(timeout_ms: float) -> object:
        polls.append(now_ms())
        return await poll(timeout_ms)

    stage.consumer.poll = polled  # type: ignore[assignment,method-assign]  # to see when it is called
    await stage.run(10)
    gaps = [later - earlier for earlier, later in pairwise(polls)]
    assert max(gaps) <= 1000 + 6 * 100
    assert sum(gap > 1000 for gap in gaps) >= 3


CORRUPTED, MIGRATED = TaskCorruptedException([TaskId(0, 0)], "for a reason"), TaskMigratedException("for a reason")


SURVIVED = {
    "corrupted": ({"process": CORRUPTED}, ["handle_corruption"]),
    "migrated": ({"process": MIGRATED}, ["handle_lost_all"]),
    "migrated while corrupted": (
        {"process": CORRUPTED, "handle_corruption": MIGRATED},
        ["handle_corruption", "handle_lost_all"],
    ),
}


@pytest.mark.parametrize(("failures", "then"), SURVIVED.values(), ids=SURVIVED)
async def test_thread_survives(failures: dict[str, StreamsException], then: list[str]) -> None:
    stage = Looping()
    for call, error in failures.items():
        stage.tasks.fail(call, error)
    await stage.run(1)
    assert [call for call in stage.tasks.calls if call.startswith("handle")] == then
    joined = [call for call in stage.consumer.calls if call != "poll"]
    assert joined == ["subscribe in"] + ["unsubscribe", "subscribe in"] * ("handle_lost_all" in then)


FATAL = {"Streams'": StreamsException("a reason"), "a client's": TopicAuthorizationException("a reason")}


@pytest.mark.parametrize("error", FATAL.values(), ids=FATAL)
async def test_thread_fails(error: KafkaException) -> None:
    stage = Looping()
    stage.consumer.fail("poll", error)
    with pytest.raises(StreamsException, match=r"^a reason$"):
        await stage.thread.run()
    assert stage.tasks.calls == ["shutdown without a commit"]
    assert stage.states == ["starting", "pending shutdown", "dead"]


async def test_rebalance_error_is_raised_after_the_rebalance() -> None:
    stage = Looping()
    stage.tasks.fail("handle_revocation", StreamsException("not committed"))
    running = asyncio.ensure_future(stage.thread.run())
    await asyncio.sleep(0.05)
    await stage.consumer.listener.on_partitions_revoked([IN0])
    with pytest.raises(StreamsException, match="not committed"):
        await running
