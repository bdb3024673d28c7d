"""The loop that everything is done in: polls, restores, processes, commits, one after the other (Kafka's StreamThread).

    CREATED -> STARTING -> PARTITIONS_ASSIGNED <-> PARTITIONS_REVOKED
                                  |    ^                 |
                                  v    |                 |
                                RUNNING <----------------'      ... and from each: PENDING_SHUTDOWN -> DEAD

Records are processed until none is left or known, or half of `max.poll.interval.ms` is over since the last poll: that
would take the thread for dead. A task processes as many in a row as goes well: one more each time, half as many where a
commit came between (as Kafka does, so that no task holds up the others).

It dies of a StreamsException. TaskCorruptedException and TaskMigratedException it lives through.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Sequence
from enum import Enum
from types import coroutine
from typing import Protocol

from sluice.client.consumer import RebalanceListener
from sluice.client.consumer.record import ConsumerRecord
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import TopicPartition
from sluice.clock import Clock

from .errors import StreamsException, TaskCorruptedException, TaskMigratedException
from .tasks import MainConsumer, TaskManager

log = logging.getLogger("sluice.streams")


class ThreadState(Enum):
    """What the thread is doing."""

    CREATED = "created"
    STARTING = "starting"
    PARTITIONS_REVOKED = "partitions revoked"
    PARTITIONS_ASSIGNED = "partitions assigned"
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending shutdown"
    DEAD = "dead"


class ThreadConsumer(MainConsumer, Protocol):
    """What is needed of the thread's consumer."""

    def subscribe(self, topics: Iterable[str], *, listener: RebalanceListener | None = None) -> None: ...

    async def unsubscribe(self) -> None: ...

    async def poll(self, timeout_ms: float) -> Sequence[ConsumerRecord]: ...


class StreamThread:
    """One loop, and its tasks."""

    def __init__(
        self,
        topics: Collection[str],
        consumer: ThreadConsumer,
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
        self._at_once = 1  # records of a task
        self._last_commit_ms = clock.monotonic_ms()

    def stop(self) -> None:
        """Ends it after this turn, with a last commit."""
        self.become(ThreadState.PENDING_SHUTDOWN)

    @property
    def is_running(self) -> bool:
        return self.state not in (ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD)

    def become(self, state: ThreadState) -> None:
        """Takes another state, unless it is about to end."""
        if state is self.state or (not self.is_running and state is not ThreadState.DEAD):
            return
        log.info(f"stream thread: {state.value}")
        self.state = state
        self._on_state(state)

    async def run(self) -> None:
        """Runs until it is stopped. Raises StreamsException: what it died of."""
        self.become(ThreadState.STARTING)
        self._consumer.subscribe(self._topics, listener=self._listener)
        stopped = False
        try:
            while self.is_running:
                await self._survive(self._run_once)
            stopped = True
        except StreamsException as error:
            log.error(f"stream thread: dies of: {error}")
            raise
        except KafkaException as error:
            log.error(f"stream thread: dies of: {error}")
            raise StreamsException(str(error)) from error
        finally:
            self.become(ThreadState.PENDING_SHUTDOWN)
            await self.tasks.shutdown(commits=stopped)
            self.become(ThreadState.DEAD)

    async def _survive(self, turn: Callable[[], Awaitable[None]]) -> None:
        try:
            try:
                await turn()
            except TaskCorruptedException as error:
                log.warning(str(error))
                await self.tasks.handle_corruption(error)
        except TaskMigratedException as error:
            log.warning(f"the group went on without this thread, which joins anew: {error}")
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
            await _yield_to_loop()

    async def _commit_if_due(self) -> bool:
        if self._clock.monotonic_ms() - self._last_commit_ms <= self._commit_interval_ms:
            return False
        if not await self.tasks.commit_all():
            return False
        self._last_commit_ms = self._clock.monotonic_ms()
        return True


class _Listener(RebalanceListener):
    """Is called within `poll`. What goes wrong in it is raised after that: the consumer's own steps go on."""

    def __init__(self, thread: StreamThread, tasks: TaskManager, consumer: ThreadConsumer) -> None:
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


@coroutine
def _yield_to_loop() -> Generator[None, None, None]:
    """Lets the event loop do something else: heartbeats and what is sent go on while records are processed."""
    yield
