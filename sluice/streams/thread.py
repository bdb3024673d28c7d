"""The loop of a runtime: poll, restore, process, commit (Kafka's StreamThread).

    CREATED -> STARTING -> PARTITIONS_ASSIGNED <-> PARTITIONS_REVOKED
                                  |    ^                 |
                                  v    |                 |
                                RUNNING <----------------'      ... and from each: PENDING_SHUTDOWN -> DEAD

After a poll, records are processed until none is left, or for half of `max.poll.interval.ms`. So that no task delays
the others, an iteration processes a limited number of records of each: the limit grows by one per iteration, and is
halved after a commit or that time (as in Kafka).

errors.py describes which exceptions end the thread.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from enum import Enum

from sluice.client.consumer import Consumer, RebalanceListener
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.network.asyncio_network import yield_to_loop
from sluice.clock import Clock

from .errors import StreamsException, TaskCorruptedException, TaskMigratedException
from .tasks import TaskManager

log = logging.getLogger("sluice.streams")


class ThreadState(Enum):
    CREATED = "created"
    STARTING = "starting"
    PARTITIONS_REVOKED = "partitions revoked"
    PARTITIONS_ASSIGNED = "partitions assigned"
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending shutdown"
    DEAD = "dead"


class StreamThread:
    def __init__(
        self,
        topics: Collection[str],
        consumer: Consumer,
        tasks: TaskManager,
        clock: Clock,
        *,
        poll_ms: int,
        commit_interval_ms: int,
        max_poll_interval_ms: int,
        on_state: Callable[[ThreadState], None],
    ) -> None:
        self.state = ThreadState.CREATED
        self.tasks = tasks
        self.polls = 0
        self._topics = topics
        self._consumer = consumer
        self._clock = clock
        self._poll_ms = poll_ms
        self._commit_interval_ms = commit_interval_ms
        self._max_process_ms = max_poll_interval_ms / 2
        self._on_state = on_state
        self._listener = _Listener(self, tasks, consumer)
        self._at_once = 1
        self._last_commit_ms = clock.monotonic_ms()

    def stop(self) -> None:
        """Stop after the current iteration, with a last commit."""
        self.become(ThreadState.PENDING_SHUTDOWN)

    @property
    def is_running(self) -> bool:
        return self.state not in (ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD)

    def become(self, state: ThreadState) -> None:
        if state is self.state or (not self.is_running and state is not ThreadState.DEAD):
            return
        log.info(f"stream thread: {state.value}")
        self.state = state
        self._on_state(state)

    async def run(self) -> None:
        self.become(ThreadState.STARTING)
        self._consumer.subscribe(self._topics, listener=self._listener)
        stopped = False
        try:
            while self.is_running:
                await self._run_with_recovery(self._run_once)
            stopped = True
        except StreamsException as error:
            log.error(f"stream thread failed: {error}")
            raise
        except KafkaException as error:
            log.error(f"stream thread failed: {error}")
            raise StreamsException(str(error)) from error
        finally:
            self.become(ThreadState.PENDING_SHUTDOWN)
            await self.tasks.shutdown(commits=stopped)
            self.become(ThreadState.DEAD)

    async def _run_with_recovery(self, iteration: Callable[[], Awaitable[None]]) -> None:
        try:
            try:
                await iteration()
            except TaskCorruptedException as error:
                log.warning(str(error))
                await self.tasks.handle_corruption(error)
        except TaskMigratedException as error:
            log.warning(f"the group has removed this thread, which rejoins: {error}")
            self.tasks.handle_lost_all()
            await self._consumer.unsubscribe()
            self._consumer.subscribe(self._topics, listener=self._listener)

    async def _run_once(self) -> None:
        self.tasks.resume_polling()
        polled_ms = self._clock.monotonic_ms()
        records = await self._consumer.poll(self._poll_ms)
        self.polls += 1
        self._listener.raise_failure()
        self.tasks.add_records(records)
        while self.is_running:
            await self.tasks.check_restoration()
            if self.tasks.is_all_running and self.state is ThreadState.PARTITIONS_ASSIGNED:
                self.become(ThreadState.RUNNING)
            processed = await self.tasks.process(self._at_once)
            has_committed = await self._commit_if_due()
            if not processed:
                return
            is_late = self._clock.monotonic_ms() - polled_ms > self._max_process_ms
            self._at_once = max(1, self._at_once // 2) if is_late or has_committed else self._at_once + 1
            if is_late:
                return
            await yield_to_loop()  # for heartbeats and sends during processing

    async def _commit_if_due(self) -> bool:
        if self._clock.monotonic_ms() - self._last_commit_ms <= self._commit_interval_ms:
            return False
        if not await self.tasks.commit_all():
            return False
        self._last_commit_ms = self._clock.monotonic_ms()
        return True


class _Listener(RebalanceListener):
    """The callbacks within `poll`. Their errors are raised after it, so that the consumer's own steps complete."""

    def __init__(self, thread: StreamThread, tasks: TaskManager, consumer: Consumer) -> None:
        self._thread = thread
        self._tasks = tasks
        self._consumer = consumer
        self._failure: KafkaException | None = None

    def raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._thread.become(ThreadState.PARTITIONS_REVOKED)
        try:
            await self._tasks.handle_revocation(partitions)
        except KafkaException as error:
            self._failure = error

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._thread.become(ThreadState.PARTITIONS_ASSIGNED)
        self._tasks.handle_assignment(self._consumer.assignment())

    async def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._thread.become(ThreadState.PARTITIONS_REVOKED)
        self._tasks.handle_lost_all()
