"""The tasks of one thread, from creation to closing (Kafka's TaskManager and TaskExecutor).

Timeouts of client calls:

    call                      counts for (task_timeout)             retried
    initialize()              the task                              after about 2 s, 4 s, ... 10 s
    complete_restoration()    the task                              in the next iteration
    process()                 the task; others continue             in the next iteration, with the same record
    commit of all tasks       each task with offsets to commit      with the next commit
    commit in a rebalance     no task: the tasks are closed         at their committed offsets

Different on purpose: a revoked task is closed immediately; Kafka suspends it until the new assignment.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from sluice.client.backoff import ExponentialBackoff, Uniform
from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.consumer import Consumer
from sluice.client.consumer.group.offsets import CommitFailedError
from sluice.client.consumer.record import ConsumerRecord
from sluice.client.errors import KafkaException, RebalanceInProgressException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.clock import Clock

from .errors import StreamsException, TaskCorruptedException, TaskId, TaskMigratedException, client_call
from .state_updater import StateUpdater
from .task import StreamTask, TaskState
from .topology import Subtopology

log = logging.getLogger("sluice.streams")

_INIT_BACKOFF_MS, _INIT_BACKOFF_MULTIPLIER, _INIT_BACKOFF_MAX_MS, _INIT_BACKOFF_JITTER = 1000, 2, 10_000, 0.5

# Errors of a commit that can be repeated later.
_NOT_NOW = (TimeoutException, RebalanceInProgressException)

MakeTask = Callable[[TaskId, Subtopology, Collection[TopicPartition]], StreamTask]
Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class InitBackoff:
    def __init__(self, now_ms: int, uniform: Uniform) -> None:
        self._backoff = ExponentialBackoff(
            _INIT_BACKOFF_MS, _INIT_BACKOFF_MULTIPLIER, _INIT_BACKOFF_MAX_MS, _INIT_BACKOFF_JITTER, uniform
        )
        self._attempts = 1
        self._last_ms = now_ms

    def failed(self, now_ms: int) -> None:
        self._attempts += 1
        self._last_ms = now_ms

    def can_attempt(self, now_ms: int) -> bool:
        """Return whether the backoff is over; each call draws it again."""
        return now_ms - self._last_ms >= self._backoff.backoff(self._attempts)


class TaskManager:
    def __init__(
        self,
        parts: Iterable[Subtopology],
        consumer: Consumer,
        updater: StateUpdater,
        on_commit: Callable[[Offsets], None],
        make_task: MakeTask,
        clock: Clock,
        uniform: Uniform,
    ) -> None:
        self.tasks: dict[TaskId, StreamTask] = {}
        self.totals = dict.fromkeys(("process", "commit", "task-created", "task-closed"), 0)
        self._parts = {part.number: part for part in parts}
        self._consumer = consumer
        self._updater = updater
        self._on_commit = on_commit
        self._make_task = make_task
        self._clock = clock
        self._uniform = uniform
        self._to_initialize: dict[TaskId, StreamTask] = {}
        self._to_complete: dict[TaskId, StreamTask] = {}
        self._init_backoffs: dict[TaskId, InitBackoff] = {}

    @property
    def is_all_running(self) -> bool:
        return all(task.state is TaskState.RUNNING for task in self.tasks.values())

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_ms())

    def _running(self) -> list[StreamTask]:
        return [task for _, task in sorted(self.tasks.items()) if task.state is TaskState.RUNNING]

    # -- rebalances ----------------------------------------------------------------------------------------------------

    def handle_assignment(self, partitions: Collection[TopicPartition]) -> None:
        wanted = self._tasks_of(partitions)
        others = [task for task in self.tasks.values() if wanted.get(task.id) != task.partitions]
        for task in others:
            self._close(task)
        for task_id, of_task in sorted(wanted.items()):
            if task_id not in self.tasks:
                task = self._make_task(task_id, self._parts[task_id.subtopology], of_task)
                self.tasks[task_id] = self._to_initialize[task_id] = task
                self.totals["task-created"] += 1
        for task in others:
            if task.id in self.tasks:  # recreated with other partitions, some of them read already
                self.tasks[task.id].rewind()
        self._consumer.pause(
            partition
            for task in self.tasks.values()
            if task.state is not TaskState.RUNNING
            for partition in task.partitions
        )
        log.info(f"tasks: {' '.join(map(str, sorted(self.tasks))) or 'none'}")

    async def handle_revocation(self, partitions: Collection[TopicPartition]) -> None:
        revoked = [task for task in self.tasks.values() if task.partitions & set(partitions)]
        to_commit = [task for task in self._running() if task.commit_needed]
        if any(task in to_commit for task in revoked):
            try:
                await self._commit(to_commit)
            except (*_NOT_NOW, TaskCorruptedException, TaskMigratedException) as error:
                log.warning(f"commit before a rebalance failed; the tasks restart at their committed offsets: {error}")
                await self._revive([task for task in to_commit if task not in revoked])
        for task in revoked:
            self._close(task)

    def handle_lost_all(self) -> None:
        for task in list(self.tasks.values()):
            self._close(task)

    def _tasks_of(self, partitions: Iterable[TopicPartition]) -> dict[TaskId, frozenset[TopicPartition]]:
        found: dict[TaskId, frozenset[TopicPartition]] = {}
        for partition in partitions:
            for part in self._parts.values():
                if partition.topic in part.sources:
                    task_id = TaskId(part.number, partition.partition)
                    found[task_id] = found.get(task_id, frozenset()) | {partition}
        return found

    def _close(self, task: StreamTask) -> None:
        self._updater.remove(task)
        for waiting in (self.tasks, self._to_initialize, self._to_complete, self._init_backoffs):
            waiting.pop(task.id, None)
        task.close()
        self.totals["task-closed"] += 1

    # -- restoration ---------------------------------------------------------------------------------------------------

    async def check_restoration(self) -> None:
        self._updater.raise_failure()
        for task in list(self._to_initialize.values()):
            await self._initialize(task)
        self._to_complete |= {task.id: task for task in self._updater.take_restored()}
        for task in list(self._to_complete.values()):
            await self._complete(task)

    async def _initialize(self, task: StreamTask) -> None:
        now_ms = self._now_ms()
        backoff = self._init_backoffs.get(task.id)
        if backoff is not None and not backoff.can_attempt(now_ms):
            return
        try:
            await task.initialize()
        except TimeoutException as error:
            task.timeout.timed_out(now_ms, error)
            if backoff is None:
                self._init_backoffs[task.id] = InitBackoff(now_ms, self._uniform)
            else:
                backoff.failed(now_ms)
            return
        task.timeout.clear()
        self._init_backoffs.pop(task.id, None)
        del self._to_initialize[task.id]
        self._updater.add(task)

    async def _complete(self, task: StreamTask) -> None:
        now_ms = self._now_ms()
        try:
            await task.complete_restoration()
        except TimeoutException as error:
            task.timeout.timed_out(now_ms, error)
            return
        task.timeout.clear()
        del self._to_complete[task.id]
        self._consumer.resume(task.partitions & self._consumer.assignment())

    # -- records -------------------------------------------------------------------------------------------------------

    def add_records(self, records: Iterable[ConsumerRecord]) -> None:
        by_partition: dict[TopicPartition, list[ConsumerRecord]] = {}
        for record in records:
            by_partition.setdefault(TopicPartition(record.topic, record.partition), []).append(record)
        for partition, of_partition in by_partition.items():
            for task_id in self._tasks_of([partition]):
                self.tasks[task_id].add_records(partition, of_partition)

    def resume_polling(self) -> None:
        for task in self._running():
            task.resume_polling()

    async def process(self, most: int) -> int:
        """Process up to `most` records of each task; return the total. Raise StreamsException."""
        processed = 0
        for task in self._running():
            begin_ms = self._now_ms()
            done = 0
            try:
                while done < most and await task.process(begin_ms):
                    task.timeout.clear()
                    done += 1
            except TimeoutException as error:
                task.timeout.timed_out(begin_ms, error)
            processed += done
        self.totals["process"] += processed
        return processed

    # -- commits -------------------------------------------------------------------------------------------------------

    async def commit_all(self) -> bool:
        if self._consumer.is_rebalancing:
            return False
        tasks = [task for task in self._running() if task.commit_needed]
        try:
            await self._commit(tasks)
        except RebalanceInProgressException:
            return False
        except TimeoutException as error:
            now_ms = self._now_ms()
            for task in tasks:
                task.timeout.timed_out(now_ms, error)
        return True

    async def _commit(self, tasks: Collection[StreamTask]) -> None:
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for task in tasks:
            offsets |= await task.prepare_commit()
        if not offsets:
            return
        await _committed(self._consumer.commit(offsets))
        self._on_commit(offsets)
        for task in tasks:
            task.timeout.clear()
            task.post_commit()
        self.totals["commit"] += len(tasks)

    # -- recovery ------------------------------------------------------------------------------------------------------

    async def handle_corruption(self, error: TaskCorruptedException) -> None:
        corrupted = {task for task in self.tasks.values() if task.id in error.tasks}
        others = [task for task in self._running() if task.commit_needed and task not in corrupted]
        try:
            await self._commit(others)
        except TaskCorruptedException as more:
            corrupted |= {task for task in others if task.id in more.tasks}
        except _NOT_NOW:
            corrupted |= set(others)
        await self._revive(corrupted)

    async def _revive(self, tasks: Iterable[StreamTask]) -> None:
        for task in sorted(tasks, key=lambda task: task.id):
            log.info(f"task {task.id}: restarts at its committed offsets", extra={"task": str(task.id)})
            self._close(task)
            await task.revive()
            self.tasks[task.id] = self._to_initialize[task.id] = task

    # -- closing -------------------------------------------------------------------------------------------------------

    async def shutdown(self, *, commits: bool) -> None:
        if commits:
            try:
                await self._commit([task for task in self._running() if task.commit_needed])
            except KafkaException as error:
                log.warning(f"the last commit failed: {error}")
        for task in list(self.tasks.values()):
            self._close(task)


async def _committed(commit: Awaitable[None]) -> None:
    try:
        with client_call("Consumer.commit"):
            await commit
    except _NOT_NOW:
        raise
    except CommitFailedError as error:
        raise TaskMigratedException(f"the commit was rejected: {error}") from error
    except KafkaException as error:
        raise StreamsException(f"the commit failed: {error}") from error
