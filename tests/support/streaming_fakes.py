"""Scripted clients for tests of single parts of a Streams runtime."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sluice.client import errors
from sluice.client.admin import NewTopic, Outcomes
from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.consumer import RebalanceListener
from sluice.client.consumer.offset_reset import EARLIEST, OffsetReset
from sluice.client.consumer.record import ConsumerRecord, Header, OffsetAndTimestamp
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer import RecordMetadata
from sluice.clock import LoopClock
from sluice.protocol.apis.list_offsets import ListOffsetsPartitionResponse
from sluice.protocol.apis.metadata import MetadataResponsePartition, MetadataResponseTopic
from sluice.streams.changelog import ChangelogReader
from sluice.streams.errors import TaskId
from sluice.streams.record_collector import RecordCollector
from sluice.streams.store import GlobalTable
from sluice.streams.task import StreamTask, TaskSettings
from sluice.streams.topology import Subtopology, Topology
from tests.support.streaming import count

T = TypeVar("T")


IN0, IN1 = TopicPartition("in", 0), TopicPartition("in", 1)
LOG0, LOG1 = TopicPartition("app-counts-changelog", 0), TopicPartition("app-counts-changelog", 1)


def clock() -> LoopClock:
    """Return the time of the running loop."""
    return LoopClock(asyncio.get_running_loop())


def record(
    value: bytes | None = b"v",
    *,
    offset: int = 0,
    timestamp: int = 1000,
    partition: TopicPartition = IN0,
    key: bytes | None = b"k",
) -> ConsumerRecord:
    return ConsumerRecord(partition.topic, partition.partition, offset, timestamp, 0, key, value, (), 5)


@dataclass
class Script:
    """Scripted calls: those of a name raise the given errors in order."""

    failures: dict[str, list[Exception]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def fail(self, name: str, *errors: Exception) -> None:
        self.failures.setdefault(name, []).extend(errors)

    def called(self, name: str) -> None:
        self.calls.append(name)
        if self.failures.get(name):
            raise self.failures[name].pop(0)


class FakeConsumer(Script):
    """A consumer of a thread or for restoring. `records` has the results of its polls."""

    def __init__(self, *assigned: TopicPartition) -> None:
        super().__init__()
        self.assigned = set(assigned)
        self.paused: set[TopicPartition] = set()
        self.lags: dict[TopicPartition, int | None] = {}
        self.sought: dict[TopicPartition, str] = {}
        self.offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self.times: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        self.positions: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.records: list[list[ConsumerRecord]] = []
        self.listener = RebalanceListener()
        self.is_rebalancing = False

    def assignment(self) -> set[TopicPartition]:
        return set(self.assigned)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self.assigned = set(partitions)

    def subscribe(self, topics: Iterable[str], *, listener: RebalanceListener | None = None) -> None:
        self.called(f"subscribe {' '.join(sorted(topics))}")
        self.listener = listener or self.listener

    async def unsubscribe(self) -> None:
        self.called("unsubscribe")

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused |= set(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.paused -= set(partitions)

    def current_lag(self, partition: TopicPartition) -> int | None:
        return self.lags.get(partition, 0)

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        self.sought[partition] = str(offset.offset if isinstance(offset, OffsetAndMetadata) else offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        self.sought |= dict.fromkeys(partitions, "beginning")
        self.positions |= dict.fromkeys(partitions, 0)

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        self.sought |= dict.fromkeys(partitions, "end")

    async def poll(self, timeout_ms: float) -> Sequence[ConsumerRecord]:
        self.called("poll")
        records = self.records.pop(0) if self.records else []
        if not records:
            await asyncio.sleep(timeout_ms / 1e3)
        for one in records:
            self.positions[TopicPartition(one.topic, one.partition)] = one.offset + 1
        return records

    async def position(self, partition: TopicPartition) -> int:
        self.called("position")
        return self.positions[partition]

    async def partitions_for(self, topic: str) -> Sequence[int]:
        self.called("partitions_for")
        return [partition.partition for partition in sorted(self.ends) if partition.topic == topic]

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        self.called("end_offsets")
        return {partition: self.ends[partition] for partition in partitions}

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self.called("commit")
        self.offsets |= offsets

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]:
        self.called("committed")
        return {partition: self.offsets.get(partition) for partition in partitions}

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, OffsetAndTimestamp | None]:
        self.called(f"offsets_for_times {' '.join(map(str, timestamps.values()))}")
        return {partition: self.times.get(partition) for partition in timestamps}


class FakeProducer(Script):
    """A producer that keeps its records. `outcomes` are the errors of the next records; None means success."""

    def __init__(self, partitions: int = 2) -> None:
        super().__init__()
        self.partitions = partitions
        self.sent: list[tuple[str, bytes | None, bytes | None, int | None]] = []
        self.outcomes: list[KafkaException | None] = []

    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] = (),
    ) -> asyncio.Future[RecordMetadata]:
        self.called("send")
        self.sent.append((topic, key, value, partition))
        future: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is None:
            future.set_result(RecordMetadata(topic, partition or 0, 0, 0))
        else:
            future.set_exception(outcome)
        return future

    async def partitions_for(self, topic: str) -> Sequence[int]:
        self.called("partitions_for")
        return range(self.partitions)

    async def flush(self) -> None:
        self.called("flush")
        await asyncio.sleep(0)


def settings_of(timeout_ms: int = 5000, *, buffered: int = 1000, reset: OffsetReset = EARLIEST) -> TaskSettings:
    return TaskSettings(timeout_ms, "kafka", 0, buffered, reset)


def part_of(topology: Topology) -> Subtopology:
    return topology.build("app").subtopologies[0]


def task_with(
    topology: Topology,
    consumer: FakeConsumer,
    producer: FakeProducer,
    *,
    settings: TaskSettings | None = None,
    partitions: Collection[TopicPartition] = (IN0,),
    tables: Mapping[str, GlobalTable] | None = None,
) -> StreamTask:
    """Return a task of the first subtopology."""
    task_id = TaskId(0, min(partition.partition for partition in partitions))
    collector = RecordCollector(task_id, producer, "kafka")  # type: ignore[arg-type]  # a fake
    return StreamTask(
        task_id,
        part_of(topology),
        partitions,
        consumer,  # type: ignore[arg-type]  # a fake
        collector,
        tables or {},
        settings or settings_of(),
        lambda: 1_700_000_000_000,
    )


class FakeAdmin(Script):
    """An admin client. `ends` has end offsets; `topics` has partition counts."""

    def __init__(self, ends: Mapping[TopicPartition, int] | None = None) -> None:
        super().__init__()
        self.ends = dict(ends or {})
        self.topics: dict[str, int] = {}
        # By call and topic, one per call; afterwards calls succeed.
        self.call_errors: dict[str, list[KafkaException]] = {}
        self.made: list[NewTopic] = []

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Outcomes[TopicPartition, ListOffsetsPartitionResponse]:
        self.called("list_offsets")
        return Outcomes(
            {partition: ListOffsetsPartitionResponse(offset=self.ends.get(partition, 0)) for partition in timestamps}
        )

    async def describe_topics(self, names: Iterable[str]) -> Outcomes[str, MetadataResponseTopic]:
        wanted = sorted(names)
        self.called(f"describe {' '.join(wanted)}")
        return Outcomes({name: self._outcome(name, "describe", self._described(name)) for name in wanted})

    async def create_topics(self, topics: Iterable[NewTopic]) -> Outcomes[str, None]:
        new = sorted(topics)
        self.called(f"create {' '.join(topic.name for topic in new)}")
        outcomes: dict[str, KafkaException | None] = {}
        for topic in new:
            outcomes[topic.name] = self._outcome(topic.name, "create", None)
            if outcomes[topic.name] is None:
                self.made.append(topic)
                self.topics[topic.name] = topic.num_partitions
        return Outcomes(outcomes)

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, int]:
        self.called("delete_records")
        return Outcomes(before)

    def _described(self, name: str) -> MetadataResponseTopic | KafkaException:
        if name in self.topics:
            return MetadataResponseTopic(partitions=[MetadataResponsePartition() for _ in range(self.topics[name])])
        return errors.UnknownTopicOrPartitionException(name)

    def _outcome(self, name: str, call: str, otherwise: T) -> T | KafkaException:
        errors = self.call_errors.get(f"{call} {name}")
        return errors.pop(0) if errors else otherwise


def reader_of(consumer: FakeConsumer, admin: FakeAdmin) -> ChangelogReader:
    return ChangelogReader(consumer, admin, clock(), 100, 100)  # type: ignore[arg-type]  # a fake


async def restoring(index: int = 0, *, has_store: bool = True, timeout_ms: int = 5000) -> StreamTask:
    """Return a task whose store is to be restored, unless it has none."""
    topology = Topology()
    if has_store:
        topology.store("counts")
    topology.source("in").process(count, stores=["counts"] * has_store)
    partition = (IN0, IN1)[index]
    task = task_with(
        topology, FakeConsumer(partition), FakeProducer(), partitions=[partition], settings=settings_of(timeout_ms)
    )
    await task.initialize()
    return task
