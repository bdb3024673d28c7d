"""A task: a sub-topology that runs on one partition of each of its topics, with its stores (Kafka's StreamTask).

    CREATED     it has no stores yet
    RESTORING   the stores are restored from changelogs (state_updater)
    RUNNING     it has processors, and processes records
    CLOSED      it is closed; revived, it is CREATED again

Kafka can also suspend tasks; here they are closed and restored again.

If a client call times out in `process`, the next call repeats the record (at least once: earlier changes of stores
remain).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.config import Profile
from sluice.client.consumer import Consumer
from sluice.client.consumer.offset_reset import EARLIEST, LATEST, NONE, OffsetReset
from sluice.client.consumer.record import ConsumerRecord
from sluice.client.errors import KafkaException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition

from .errors import StreamsException, TaskId, client_call
from .processor import Context, Processor, Record, TaskScope, create_processor
from .record_collector import RecordCollector
from .record_queue import PartitionGroup
from .store import GlobalTable, KeyValueStore
from .task_timeout import TaskTimeout
from .topology import Node, Process, Sink, Subtopology

log = logging.getLogger("sluice.streams")


class TaskState(Enum):
    CREATED = "created"
    RESTORING = "restoring"
    RUNNING = "running"
    CLOSED = "closed"


_AFTER = {
    TaskState.CREATED: {TaskState.RESTORING, TaskState.CLOSED},
    TaskState.RESTORING: {TaskState.RUNNING, TaskState.CLOSED},
    TaskState.RUNNING: {TaskState.CLOSED},
    TaskState.CLOSED: {TaskState.CREATED},
}


class TaskSettings(NamedTuple):
    timeout_ms: int
    profile: Profile
    max_idle_ms: int
    max_buffered_records: int
    offset_reset: OffsetReset


class StreamTask:
    def __init__(
        self,
        task_id: TaskId,
        part: Subtopology,
        partitions: Collection[TopicPartition],
        consumer: Consumer,
        collector: RecordCollector,
        tables: Mapping[str, GlobalTable],
        settings: TaskSettings,
        wall_ms: Callable[[], int],
    ) -> None:
        self.id = task_id
        self.partitions = frozenset(partitions)
        self.state = TaskState.CREATED
        self.timeout = TaskTimeout(task_id, settings.timeout_ms, settings.profile)
        self.stores: dict[str, KeyValueStore] = {}
        self.commit_needed = False
        self._part = part
        self._consumer = consumer
        self._collector = collector
        self._settings = settings
        self._wall_ms = wall_ms
        self._scope = TaskScope(task_id, tables)
        self._queues = PartitionGroup(task_id, partitions, consumer.current_lag, settings.max_idle_ms)
        self._sources: dict[str, Callable[[Record], None]] = {}
        self._processors: list[Processor] = []
        self._record: ConsumerRecord | None = None  # in process, or to be repeated
        self._consumed: dict[TopicPartition, OffsetAndMetadata] = {}
        self._to_reset: set[TopicPartition] = set()
        self._to_resume: set[TopicPartition] = set()

    @property
    def changelogs(self) -> dict[TopicPartition, str]:
        return {TopicPartition(topic, self.id.partition): store for store, topic in self._part.stores.items()}

    @property
    def buffered(self) -> int:
        return len(self._queues) + (self._record is not None)

    # -- initialization ------------------------------------------------------------------------------------------------

    async def initialize(self) -> None:
        """Create the stores; a ClientTimeoutException allows a retry."""
        await self._collector.initialize(self.changelogs)
        self.stores = {
            store: KeyValueStore(self._logged_to(changelog.topic)) for changelog, store in self.changelogs.items()
        }
        self._become(TaskState.RESTORING)

    async def complete_restoration(self) -> None:
        """Find the start offsets, and create the processors; a ClientTimeoutException allows a retry."""
        try:
            with client_call("Consumer.committed"):
                committed = await self._consumer.committed(self.partitions)
            await self._reset_offsets(committed)
        except TimeoutException:
            raise
        except KafkaException as error:
            raise StreamsException(f"task {self.id}: cannot find the start offsets: {error}", self.id) from error
        self._make_processors()
        self._become(TaskState.RUNNING)
        log.info(f"task {self.id}: restored and running", extra={"task": str(self.id)})

    def _logged_to(self, changelog: str) -> Callable[[bytes, bytes | None], None]:
        def change(key: bytes, value: bytes | None) -> None:
            self._collector.add(changelog, Record(key, value, self._scope.timestamp), partition=self.id.partition)

        return change

    async def _reset_offsets(self, committed: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        """Seek to the committed offsets, which a revived task has passed."""
        for partition in list(self._to_reset):
            offset = committed.get(partition)
            if offset is not None:
                self._consumer.seek(partition, offset)
                self._to_reset.discard(partition)
        lost = sorted(self._to_reset)
        reset = self._settings.offset_reset
        if not lost:
            return
        if reset == NONE:
            raise StreamsException(
                f"task {self.id}: no committed offset for {', '.join(map(str, lost))}, and auto.offset.reset=none",
                self.id,
            )
        if reset == EARLIEST:
            self._consumer.seek_to_beginning(lost)
        elif reset == LATEST:
            self._consumer.seek_to_end(lost)
        else:
            await self._reset_by_duration(lost, reset)
        self._to_reset.clear()

    async def _reset_by_duration(self, partitions: list[TopicPartition], reset: OffsetReset) -> None:
        at_ms = max(0, reset.timestamp(self._wall_ms()))
        with client_call("Consumer.offsets_for_times"):
            found = await self._consumer.offsets_for_times(dict.fromkeys(partitions, at_ms))
        for partition, offset in found.items():
            if offset is None:
                self._consumer.seek_to_end([partition])
            else:
                self._consumer.seek(partition, offset.offset)

    # -- processors ----------------------------------------------------------------------------------------------------

    def _make_processors(self) -> None:
        runs: dict[Node, Callable[[Record], None]] = {}
        for node in reversed(self._part.nodes):
            children = tuple(runs[child] for child in node.children)
            runs[node] = self._named(node.name, self._run_of(node, children))
        self._sources = {topic: runs[node] for topic, node in self._part.sources.items()}

    def _run_of(self, node: Node, children: tuple[Callable[[Record], None], ...]) -> Callable[[Record], None]:
        role = node.role
        if isinstance(role, Sink):
            topic, partitioner, collector = self._part.topic_name(role.topic), role.partitioner, self._collector
            return lambda record: collector.add(topic, record, partitioner=partitioner)
        stores = role.stores if isinstance(role, Process) else ()
        context = Context(self._scope, children, {store: self.stores[store] for store in stores})
        if not isinstance(role, Process):
            return context.forward
        made = create_processor(role.processor, context)
        self._processors.append(made)
        return made.process

    def _named(self, name: str, run: Callable[[Record], None]) -> Callable[[Record], None]:
        scope = self._scope

        def named(record: Record) -> None:
            scope.node = name
            run(record)

        return named

    # -- records -------------------------------------------------------------------------------------------------------

    def add_records(self, partition: TopicPartition, records: Iterable[ConsumerRecord]) -> None:
        if self._queues.add(partition, records) > self._settings.max_buffered_records:
            self._consumer.pause([partition])

    def resume_polling(self) -> None:
        if self._to_resume:
            self._consumer.resume(self._to_resume & self._consumer.assignment())
            self._to_resume.clear()

    async def process(self, now_ms: int) -> bool:
        """Process the next record; return False if it is not known yet. A StreamsException is final."""
        if self._record is None:
            if not self._queues.is_ready(now_ms):
                return False
            self._record = self._queues.next()
        record = self._scope.record = self._record
        try:
            self._sources[record.topic](Record(record.key, record.value, record.timestamp, record.headers))
            await self._collector.send_all()
        except TimeoutException:
            self._collector.drop()
            raise
        except StreamsException:
            self._record = None
            raise
        except Exception as error:
            self._record = None
            position = f"{record.topic}-{record.partition} offset {record.offset}"
            raise StreamsException(
                f"task {self.id}: processor {self._scope.node} failed at {position}: {error!r}", self.id
            ) from error
        self._done(record)
        return True

    def _done(self, record: ConsumerRecord) -> None:
        partition = TopicPartition(record.topic, record.partition)
        self._consumed[partition] = OffsetAndMetadata(record.offset + 1, "", record.leader_epoch)
        self._record = None
        self.commit_needed = True
        if self._queues.size(partition) <= self._settings.max_buffered_records:
            self._to_resume.add(partition)

    # -- commits -------------------------------------------------------------------------------------------------------

    async def prepare_commit(self) -> dict[TopicPartition, OffsetAndMetadata]:
        if not self.commit_needed:
            return {}
        await self._collector.flush()
        return dict(self._consumed)

    def post_commit(self) -> None:
        self.commit_needed = False
        self._consumed.clear()

    # -- closing -------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        if self.state is TaskState.CLOSED:
            return
        self._close_processors()
        self.stores = {}
        self._sources = {}
        self._queues.clear()
        self._record = self._scope.record = None
        self._consumed.clear()
        self._to_resume.clear()
        self.commit_needed = False
        self._collector.drop()
        self._become(TaskState.CLOSED)

    async def revive(self) -> None:
        await self._collector.settle()
        self.timeout.clear()
        self._become(TaskState.CREATED)
        self.rewind()

    def rewind(self) -> None:
        partitions = self.partitions & self._consumer.assignment()
        self._consumer.pause(partitions)
        self._to_reset |= partitions

    def _close_processors(self) -> None:
        for processor in self._processors:
            try:
                processor.close()
            except Exception as error:
                log.warning(f"task {self.id}: a processor could not be closed: {error!r}")
        self._processors = []

    def _become(self, state: TaskState) -> None:
        assert state in _AFTER[self.state], f"task {self.id}: from {self.state.value} to {state.value}"
        self.state = state
