"""Task management: creation, running, commits, revival and closing. test_kip572 covers the timeouts of KIP-572."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from itertools import pairwise
from random import Random
from typing import NoReturn

import pytest

from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.consumer.group.offsets import CommitFailedError
from sluice.client.errors import KafkaException, RebalanceInProgressException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.streams.errors import StreamsException, TaskCorruptedException, TaskId, TaskMigratedException
from sluice.streams.record_collector import RecordCollector
from sluice.streams.state_updater import StateUpdater
from sluice.streams.task import StreamTask, TaskState
from sluice.streams.tasks import InitBackoff, Offsets, TaskManager
from sluice.streams.topology import Subtopology, Topology
from tests.support.streaming import now_ms, word_count
from tests.support.streaming_fakes import FakeAdmin, FakeConsumer, FakeProducer, clock, reader_of, record, settings_of

LINES0, LINES1 = TopicPartition("lines", 0), TopicPartition("lines", 1)
WORDS0 = TopicPartition("app-words-repartition", 0)
T00, T01, T10 = TaskId(0, 0), TaskId(0, 1), TaskId(1, 0)


class Managed:
    """A task manager with scripted clients."""

    def __init__(self, timeout_ms: int, topology: Topology) -> None:
        self.consumer = FakeConsumer()
        self.producer = FakeProducer()
        self.admin = FakeAdmin()
        self.commits: list[Offsets] = []
        self.updater = StateUpdater(reader_of(FakeConsumer(), self.admin))
        self._settings = settings_of(timeout_ms)
        parts = topology.build("app").subtopologies
        self.manager = TaskManager(
            parts,
            self.consumer,  # type: ignore[arg-type]  # a fake
            self.updater,
            self.commits.append,
            self._make,
            clock(),
            Random(1).uniform,
        )

    def _make(self, task_id: TaskId, part: Subtopology, partitions: Collection[TopicPartition]) -> StreamTask:
        collector = RecordCollector(task_id, self.producer, "kafka")  # type: ignore[arg-type]  # a fake
        return StreamTask(task_id, part, partitions, self.consumer, collector, {}, self._settings, lambda: 0)  # type: ignore[arg-type]  # a fake

    def assign(self, *partitions: TopicPartition) -> None:
        self.consumer.assigned = set(partitions)
        self.manager.handle_assignment(self.consumer.assigned)

    async def run(self, *partitions: TopicPartition) -> None:
        self.assign(*partitions)
        while not self.manager.is_all_running:
            await self.manager.check_restoration()
            await asyncio.sleep(0.1)

    async def processed(self, *partitions: TopicPartition) -> None:
        """Process one record per task."""
        for partition in partitions:
            self.manager.add_records([record(b"to be", partition=partition, offset=7)])
        await self.manager.process(10)

    def states(self) -> dict[str, str]:
        return {str(task_id): task.state.value for task_id, task in sorted(self.manager.tasks.items())}


@asynccontextmanager
async def managed(timeout_ms: int = 5000, topology: Topology | None = None) -> AsyncIterator[Managed]:
    found = Managed(timeout_ms, topology or word_count())
    async with found.updater:
        yield found


@asynccontextmanager
async def changed(*partitions: TopicPartition) -> AsyncIterator[Managed]:
    """Run tasks that have each processed a record."""
    async with managed() as stage:
        await stage.run(*partitions)
        await stage.processed(*partitions)
        yield stage


async def test_tasks_are_created_from_the_assignment() -> None:
    async with managed() as stage:
        stage.assign(LINES0, LINES1, WORDS0)
        assert stage.states() == {"0_0": "created", "0_1": "created", "1_0": "created"}
        assert stage.consumer.paused == {LINES0, LINES1, WORDS0}, "paused before they run"
        kept = stage.manager.tasks[T00]
        await stage.run(LINES0, WORDS0)
        assert stage.manager.tasks[T00] is kept
        assert stage.states() == {"0_0": "running", "1_0": "running"}
        assert stage.consumer.paused & stage.consumer.assigned == set()
        stage.assign(LINES0, WORDS0, LINES1)
        assert stage.consumer.paused == {LINES1}, "running tasks are fetched"
        assert stage.manager.totals["task-created"] == 4
        assert stage.manager.totals["task-closed"] == 1


async def test_task_with_a_new_partition_returns_to_its_committed_offset() -> None:
    topology = Topology()
    topology.source("lines", "more").sink("out")
    async with managed(topology=topology) as stage:
        await stage.run(LINES0)
        await stage.processed(LINES0)
        assert await stage.manager.commit_all()
        stage.manager.add_records([record(b"read, and not processed", partition=LINES0, offset=8)])
        await stage.run(LINES0, TopicPartition("more", 0))
        assert stage.consumer.sought[LINES0] == "8"
        assert stage.states() == {"0_0": "running"}


async def test_slow_initialization_backs_off_exponentially() -> None:
    async with managed(300_000) as stage:
        stage.producer.fail("partitions_for", *[TimeoutException("late")] * 5)
        stage.assign(WORDS0)
        attempts: list[int] = []
        while not stage.manager.is_all_running:
            before = stage.producer.calls.count("partitions_for")
            await stage.manager.check_restoration()
            if stage.producer.calls.count("partitions_for") > before:
                attempts.append(now_ms())
            if len(attempts) == 1:
                assert stage.manager.tasks[T10].timeout.deadline_ms == attempts[0] + 300_000
            await asyncio.sleep(0.1)
        gaps = [later - earlier for earlier, later in pairwise(attempts)]
        for gap, base in zip(gaps, [2000, 4000, 8000, 10_000, 10_000], strict=True):
            assert base / 2 <= gap <= 1.5 * base + 100, gaps
        assert stage.manager.tasks[T10].timeout.deadline_ms is None


INITIALIZATIONS = [(1.0, 1, 2000), (1.0, 2, 4000), (1.0, 3, 8000), (1.0, 4, 10_000), (0.5, 1, 1000), (1.49, 1, 2980)]


@pytest.mark.parametrize(("draw", "attempts", "waits_ms"), INITIALIZATIONS)
def test_initialization_backoff_is_kafkas(draw: float, attempts: int, waits_ms: int) -> None:
    backoff = InitBackoff(0, lambda _low, _high: draw)
    for _ in range(attempts - 1):
        backoff.failed(0)
    assert not backoff.can_attempt(waits_ms - 1)
    assert backoff.can_attempt(waits_ms)


async def test_timed_out_position_lookup_is_retried_in_the_next_iteration() -> None:
    async with managed() as stage:
        stage.consumer.fail("committed", *[TimeoutException("late")] * 3)
        stage.assign(LINES0)
        deadlines = []
        for _ in range(5):
            await stage.manager.check_restoration()
            deadlines.append(stage.manager.tasks[T00].timeout.deadline_ms)
            await asyncio.sleep(0.1)
        began_ms = now_ms() - 500
        assert deadlines == [None, *[began_ms + 100 + 5000] * 3, None]
        assert stage.states() == {"0_0": "running"}


async def test_commit_covers_all_tasks_with_changes() -> None:
    async with managed() as stage:
        await stage.run(LINES0, LINES1)
        await stage.processed(LINES0)
        assert await stage.manager.commit_all()
        assert stage.consumer.offsets == {LINES0: OffsetAndMetadata(8, "", 5)}
        assert stage.manager.totals["commit"] == 1
        assert stage.commits == [stage.consumer.offsets]
        assert await stage.manager.commit_all()
        assert stage.consumer.calls.count("commit") == 1, "no changes"


async def a_second(*_given: object, **_names: object) -> NoReturn:
    """Return a call that takes one second."""
    await asyncio.sleep(1)
    raise TimeoutException("late")


async def test_deadline_counts_from_before_a_record_and_after_a_commit_as_in_kafka() -> None:
    topology = Topology()
    topology.source("lines").sink("out", partitioner=lambda _record, _partitions: 0)
    async with managed(topology=topology) as stage:
        await stage.run(LINES0)
        partitions_for, stage.producer.partitions_for = stage.producer.partitions_for, a_second  # type: ignore[method-assign]
        began_ms = now_ms()
        await stage.processed(LINES0)
        assert stage.manager.tasks[T00].timeout.deadline_ms == began_ms + 5000
        stage.producer.partitions_for = partitions_for  # type: ignore[method-assign]
        await stage.manager.process(1)
        forgotten = stage.manager.tasks[T00].timeout.deadline_ms
        assert forgotten is None, "a processed record is progress, before any commit"
        stage.consumer.commit = a_second  # type: ignore[method-assign]
        began_ms = now_ms()
        await stage.manager.commit_all()
        assert stage.manager.tasks[T00].timeout.deadline_ms == began_ms + 1000 + 5000


async def test_no_commit_happens_during_a_rebalance() -> None:
    async with changed(LINES0) as stage:
        stage.consumer.is_rebalancing = True
        assert not await stage.manager.commit_all()
        stage.consumer.is_rebalancing = False
        stage.consumer.fail("commit", RebalanceInProgressException("others join"))
        assert not await stage.manager.commit_all()
        assert stage.manager.tasks[T00].timeout.deadline_ms is None
        assert await stage.manager.commit_all()
        assert LINES0 in stage.consumer.offsets


@pytest.mark.parametrize(
    ("error", "raised"),
    [(CommitFailedError("gone on"), TaskMigratedException), (KafkaException("odd"), StreamsException)],
    ids=["the group has gone on", "anything else"],
)
async def test_rejected_commit(error: KafkaException, raised: type[StreamsException]) -> None:
    async with changed(LINES0) as stage:
        stage.consumer.fail("commit", error)
        with pytest.raises(StreamsException) as met:
            await stage.manager.commit_all()
        assert type(met.value) is raised


async def test_revoked_tasks_are_committed_with_the_rest_and_closed() -> None:
    async with managed() as stage:
        await stage.run(LINES0, LINES1, WORDS0)
        await stage.processed(LINES0, LINES1)
        stage.consumer.is_rebalancing = True
        await stage.manager.handle_revocation([LINES0])
        assert stage.consumer.offsets.keys() == {LINES0, LINES1}
        assert stage.states() == {"0_1": "running", "1_0": "running"}


async def test_revocation_without_changes_does_not_commit() -> None:
    async with managed() as stage:
        await stage.run(LINES0, LINES1)
        await stage.processed(LINES1)
        await stage.manager.handle_revocation([LINES0])
        assert stage.consumer.offsets == {}
        assert stage.states() == {"0_1": "running"}


@pytest.mark.parametrize(
    "error",
    [TimeoutException("late"), RebalanceInProgressException("again"), CommitFailedError("gone on")],
    ids=lambda error: type(error).__name__,
)
async def test_failed_commit_in_a_rebalance_revives_the_other_tasks(error: KafkaException) -> None:
    async with managed() as stage:
        await stage.run(LINES0, LINES1, WORDS0)
        await stage.processed(LINES0, LINES1)
        stage.consumer.fail("commit", error)
        await stage.manager.handle_revocation([LINES0])
        assert stage.states() == {"0_1": "created", "1_0": "running"}
        assert {task.timeout.deadline_ms for task in stage.manager.tasks.values()} == {None}
        assert LINES1 in stage.consumer.paused


async def test_lost_tasks_are_closed_without_a_commit() -> None:
    async with changed(LINES0) as stage:
        stage.manager.handle_lost_all()
        assert stage.manager.tasks == {}
        assert stage.consumer.offsets == {}


REVIVED = {
    "the others commit first": (None, {"0_0": "created", "0_1": "running"}, {LINES1}),
    "the others cannot commit": (TimeoutException("late"), {"0_0": "created", "0_1": "created"}, set()),
}


@pytest.mark.parametrize(("others", "states", "committed"), REVIVED.values(), ids=REVIVED)
async def test_corrupted_task_is_revived(
    others: KafkaException | None, states: dict[str, str], committed: set[TopicPartition]
) -> None:
    async with changed(LINES0, LINES1) as stage:
        if others is not None:
            stage.consumer.fail("commit", others)
        await stage.manager.handle_corruption(TaskCorruptedException([T00], "not delivered"))
        assert stage.states() == states
        assert stage.consumer.offsets.keys() == committed
        assert LINES0 in stage.consumer.paused
        await stage.run(LINES0, LINES1)
        assert stage.consumer.sought[LINES0] == "beginning"
        assert LINES0 not in stage.consumer.paused


async def test_corruption_found_during_the_commit_revives_these_tasks_too() -> None:
    async with managed() as stage:
        await stage.run(LINES0, LINES1)
        stage.producer.outcomes = [None, TimeoutException("late")]
        await stage.processed(LINES0)
        stage.producer.outcomes = [TimeoutException("late")]
        await stage.processed(LINES1)
        await stage.manager.handle_corruption(TaskCorruptedException([T00], "not delivered"))
        assert stage.states() == {"0_0": "created", "0_1": "created"}
        assert stage.consumer.offsets == {}


async def test_failed_restoration_ends_the_thread() -> None:
    async with managed(timeout_ms=0) as stage:
        stage.admin.fail("list_offsets", *[TimeoutException("late")] * 2)
        with pytest.raises(StreamsException, match=r"task 1_0: .*Admin\.list_offsets"):
            await stage.run(WORDS0)


@pytest.mark.parametrize("commits", [True, False])
async def test_clean_shutdown_commits_last(commits: bool) -> None:
    async with changed(LINES0) as stage:
        await stage.manager.shutdown(commits=commits)
        assert stage.manager.tasks == {}
        assert bool(stage.consumer.offsets) == commits


async def test_failed_last_commit_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="sluice.streams")
    async with changed(LINES0) as stage:
        stage.consumer.fail("commit", TimeoutException("late"))
        await stage.manager.shutdown(commits=True)
    assert caplog.messages == ["the last commit failed: Consumer.commit: late"]


async def test_tasks_are_processed_round_robin() -> None:
    async with managed() as stage:
        await stage.run(LINES0, LINES1)
        for partition in (LINES0, LINES1):
            stage.manager.add_records([record(b"a", partition=partition, offset=offset) for offset in range(5)])
        assert [await stage.manager.process(2) for _ in range(4)] == [4, 4, 2, 0]
        assert stage.manager.totals["process"] == 10
        assert all(task.state is TaskState.RUNNING for task in stage.manager.tasks.values())
