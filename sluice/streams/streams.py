"""A Streams application (Kafka's KafkaStreams).

    async with Streams(topology, {"application.id": "word-count", "bootstrap.servers": "127.0.0.1:9092"}) as streams:
        await streams.run()        # until it fails

    CREATED -> REBALANCING <-> RUNNING -> PENDING_SHUTDOWN -> NOT_RUNNING
                       `----------'----> ERROR

`async with` restores global tables and then starts the only stream thread. Runtimes with the same `application.id` form
a group that shares the tasks. If the thread fails, so does the runtime.
"""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Mapping
from contextlib import AsyncExitStack
from enum import Enum
from random import Random  # noqa: TID251  (the runtime's only source of randomness, unless one is given)
from uuid import UUID

from sluice.client.admin import AdminClient
from sluice.client.config import Given, Profile
from sluice.client.consumer import Consumer
from sluice.client.consumer.group.assignors import Assignor
from sluice.client.consumer.offset_reset import offset_reset
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer import Producer
from sluice.clock import Clock, LoopClock

from .assignor import stream_assignor
from .changelog import ChangelogReader
from .config import StreamsConfig
from .errors import StreamsException, TaskId
from .global_table import GlobalSettings, GlobalThread
from .internal_topics import InternalTopicManager
from .record_collector import RecordCollector
from .repartition_purge import RepartitionPurge
from .state_updater import StateUpdater
from .store import GlobalTable
from .task import StreamTask, TaskSettings, TaskState
from .tasks import TaskManager
from .thread import StreamThread, ThreadState
from .topology import Subtopology, Topology

__all__ = ["State", "Streams", "StreamsException"]

log = logging.getLogger("sluice.streams")


class State(Enum):
    """The state of a runtime (KafkaStreams.State)."""

    CREATED = "created"
    REBALANCING = "rebalancing"
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending shutdown"
    NOT_RUNNING = "not running"
    ERROR = "error"


class Streams:
    """A runtime of a topology, to be used in `async with`, in one event loop."""

    def __init__(
        self,
        topology: Topology,
        config: Given,
        *,
        profile: Profile = "kafka",
        random: Random | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Validate the configuration and the topology; `async with` connects.

        Args:
            topology: The computation.
            config: Properties of Kafka Streams and of its clients.
            profile: "kip" follows the KIP texts where Kafka differs.
            random: Source of jitter and ids.
            clock: The event loop's by default.

        Raises:
            ConfigError: For an unknown property or an invalid value.
            TopologyException: For an invalid topology.
        """
        self.config = StreamsConfig(config, profile)
        self.state = State.CREATED
        self.error: StreamsException | None = None
        self._topology = topology.build(self.config.application_id)
        self._random = random or Random()  # noqa: S311  (for jitter and ids, not for secrets)
        self._given_clock = clock
        self.client_id = self.config.text("client.id") or (
            f"{self.config.application_id}-{UUID(int=self._random.getrandbits(128), version=4)}"
        )
        self._threads: list[asyncio.Task[None]] = []
        self._stream_thread: StreamThread | None = None
        self._reader: ChangelogReader | None = None
        self._tables: Mapping[str, GlobalTable] = {}

    async def __aenter__(self) -> "Streams":
        """Start; raise StreamsException if global tables cannot be restored, or after an earlier start."""
        if self.state is not State.CREATED:
            raise StreamsException("a runtime can be started only once; create another one")
        loop = asyncio.get_running_loop()
        self._clock = self._given_clock or LoopClock(loop)
        self._ended = asyncio.Event()
        self._become(State.REBALANCING)
        try:
            if self._topology.tables:
                restored: asyncio.Future[None] = loop.create_future()
                starting = self._start(self._run_global(restored))
                await asyncio.wait([starting, restored], return_when=asyncio.FIRST_COMPLETED)
                if self.error is not None:
                    raise self.error
        except BaseException:
            await self.close(timeout_ms=0)
            raise
        if self._topology.subtopologies:
            self._start(self._run_stream_thread())
        else:
            self._become(State.RUNNING)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        await self.close(timeout_ms=None if kind is None else 0)

    async def run(self) -> None:
        """Wait until the runtime is closed; raise StreamsException if it fails."""
        await self._ended.wait()
        if self.error is not None:
            raise self.error

    async def close(self, timeout_ms: float | None = None) -> None:
        """Stop processing within `timeout_ms`, commit, and leave the group."""
        self._become(State.PENDING_SHUTDOWN)
        if self._stream_thread is not None:
            self._stream_thread.stop()
            stopping = [self._threads[-1]]
            await asyncio.wait(stopping, timeout=None if timeout_ms is None else timeout_ms / 1e3)
        for thread in self._threads:
            thread.cancel()
        await asyncio.gather(*self._threads, return_exceptions=True)
        self._become(State.NOT_RUNNING)
        self._ended.set()

    @property
    def tasks(self) -> dict[TaskId, TaskState]:
        """The tasks of this runtime, and their states."""
        thread = self._stream_thread
        return {} if thread is None else {task.id: task.state for _, task in sorted(thread.tasks.tasks.items())}

    def metrics(self) -> dict[str, float]:
        """Return totals since the start, and counts of alive and failed threads."""
        thread, reader = self._stream_thread, self._reader
        totals = {} if thread is None else {f"{name}-total": float(n) for name, n in thread.tasks.totals.items()}
        return {
            **totals,
            "poll-total": 0 if thread is None else thread.polls,
            "restore-total": 0 if reader is None else reader.restored,
            "alive-stream-threads": int(thread is not None and thread.is_running),
            "failed-stream-threads": int(self.error is not None),
        }

    # -- threads -------------------------------------------------------------------------------------------------------

    def _start(self, running: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        thread = asyncio.ensure_future(self._watched(running))
        self._threads.append(thread)
        return thread

    async def _watched(self, running: Coroutine[object, object, None]) -> None:
        try:
            await running
        except StreamsException as error:
            self._fail(error)
        except Exception as error:
            log.exception("a thread failed with an internal error")
            failure = StreamsException(f"a thread failed: {error!r}")
            failure.__cause__ = error
            self._fail(failure)

    def _fail(self, error: StreamsException) -> None:
        self.error = self.error or error
        self._become(State.ERROR)
        for thread in self._threads:
            if thread is not asyncio.current_task():
                thread.cancel()
        self._ended.set()

    async def _run_global(self, restored: "asyncio.Future[None]") -> None:
        config, client_id = self.config, f"{self.client_id}-global-consumer"
        async with self._consumer("global", client_id) as consumer:
            settings = GlobalSettings(
                task_timeout_ms=config.integer("task.timeout.ms"),
                retry_backoff_ms=config.integer("retry.backoff.ms"),
                poll_ms=config.integer("poll.ms"),
                request_timeout_ms=consumer.config.integer("request.timeout.ms"),
                profile=config.profile,
            )
            thread = GlobalThread(self._topology.tables, consumer, settings, self._clock)
            await thread.restore()
            self._tables = thread.tables
            restored.set_result(None)
            await thread.run()

    async def _run_stream_thread(self) -> None:
        config, name = self.config, f"{self.client_id}-StreamThread-1"
        async with AsyncExitStack() as clients:
            producer = await clients.enter_async_context(
                Producer(
                    config.producer(f"{name}-producer"), profile=config.profile, random=self._random, clock=self._clock
                )
            )
            admin = await clients.enter_async_context(
                AdminClient(
                    config.admin(f"{self.client_id}-admin"),
                    profile=config.profile,
                    random=self._random,
                    clock=self._clock,
                )
            )
            restoring = await clients.enter_async_context(self._consumer("restore", f"{name}-restore-consumer"))
            self._reader = ChangelogReader(
                restoring, admin, self._clock, config.integer("poll.ms"), config.integer("retry.backoff.ms")
            )
            updater = await clients.enter_async_context(StateUpdater(self._reader))
            repartition_topics = {name for part in self._topology.subtopologies for name in part.repartition_sources}
            purge_ms = config.integer("repartition.purge.interval.ms")
            purge = await clients.enter_async_context(
                RepartitionPurge(repartition_topics, admin, self._clock, purge_ms)
            )
            topics = self._internal_topics(admin)
            consumer = await clients.enter_async_context(
                self._consumer("main", f"{name}-consumer", stream_assignor(self._topology, topics))
            )
            thread = self._stream_thread = self._thread(consumer, producer, updater, purge)
            await thread.run()

    def _consumer(self, which: str, client_id: str, *assignors: Assignor) -> Consumer:
        return Consumer(
            self.config.consumer(which, client_id),
            profile=self.config.profile,
            assignors=assignors,
            random=self._random,
            clock=self._clock,
        )

    def _internal_topics(self, admin: AdminClient) -> InternalTopicManager:
        config = self.config
        return InternalTopicManager(
            admin,
            self._clock,
            replication_factor=config.integer("replication.factor"),
            retry_backoff_ms=config.integer("retry.backoff.ms"),
            max_poll_interval_ms=config.max_poll_interval_ms,
            topic_configs=config.topic_configs,
        )

    def _thread(
        self, consumer: Consumer, producer: Producer, updater: StateUpdater, purge: RepartitionPurge
    ) -> StreamThread:
        config = self.config
        settings = TaskSettings(
            timeout_ms=config.integer("task.timeout.ms"),
            profile=config.profile,
            max_idle_ms=config.integer("max.task.idle.ms"),
            max_buffered_records=config.integer("buffered.records.per.partition"),
            offset_reset=offset_reset(consumer.config.text("auto.offset.reset")),
        )

        def make(task_id: TaskId, part: Subtopology, partitions: Collection[TopicPartition]) -> StreamTask:
            collector = RecordCollector(task_id, producer, config.profile)
            return StreamTask(
                task_id, part, partitions, consumer, collector, self._tables, settings, self._clock.wall_ms
            )

        tasks = TaskManager(
            self._topology.subtopologies, consumer, updater, purge.committed, make, self._clock, self._random.uniform
        )
        return StreamThread(
            self._topology.source_topics,
            consumer,
            tasks,
            self._clock,
            poll_ms=config.integer("poll.ms"),
            commit_interval_ms=config.integer("commit.interval.ms"),
            max_poll_interval_ms=config.max_poll_interval_ms,
            on_state=self._thread_became,
        )

    # -- states --------------------------------------------------------------------------------------------------------

    def _thread_became(self, state: ThreadState) -> None:
        if state is ThreadState.RUNNING:
            self._become(State.RUNNING)
        elif state in (ThreadState.PARTITIONS_REVOKED, ThreadState.PARTITIONS_ASSIGNED):
            self._become(State.REBALANCING)

    def _become(self, state: State) -> None:
        if state not in _AFTER[self.state]:
            return
        log.info(f"streams {self.config.application_id}: {self.state.value} -> {state.value}")
        self.state = state


_AT_WORK = {State.REBALANCING, State.RUNNING, State.PENDING_SHUTDOWN, State.ERROR}
_AFTER = {
    State.CREATED: {State.REBALANCING},
    State.REBALANCING: _AT_WORK - {State.REBALANCING},
    State.RUNNING: _AT_WORK - {State.RUNNING},
    State.PENDING_SHUTDOWN: {State.NOT_RUNNING, State.ERROR},
    State.NOT_RUNNING: set(),
    State.ERROR: set(),
}
