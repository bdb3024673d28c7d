"""The records that a task sends to sinks, changelogs and repartition topics (Kafka's RecordCollectorImpl).

Records are collected while a source record is processed, and then passed to the producer. The next send or commit of
the task raises a delivery failure:

    cause of the failure                              exception
    the producer is fenced, or out of sequence        TaskMigratedException
    other retriable errors                            TaskCorruptedException
    others: not authorized, too large, ...            StreamsException, which ends the thread

So an expired `delivery.timeout.ms` never counts for `task.timeout.ms`. In Kafka, neither does a `send` that blocks for
`max.block.ms`; in KIP-572 and with `profile="kip"` it counts. A lookup of partitions counts in both.

Different on purpose: Kafka's tasks share one stored failure. A task that is closed can clear the failure of another,
which then commits records that were not delivered.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from sluice.client import errors
from sluice.client.config import Profile
from sluice.client.errors import KafkaException, RetriableException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer import Producer, RecordMetadata

from .errors import StreamsException, TaskCorruptedException, TaskId, TaskMigratedException, client_call
from .processor import Record
from .topology import Partitioner

log = logging.getLogger("sluice.streams")

_FENCED = (
    errors.InvalidPidMappingException,
    errors.InvalidProducerEpochException,
    errors.OutOfOrderSequenceException,
    errors.ProducerFencedException,
)


class _Outgoing(NamedTuple):
    topic: str
    record: Record
    partition: int | None
    partitioner: Partitioner | None


class RecordCollector:
    def __init__(self, task_id: TaskId, producer: Producer, profile: Profile) -> None:
        self._task_id = task_id
        self._producer = producer
        self._counts_blocking = profile == "kip"
        self._outgoing: list[_Outgoing] = []
        self._failure: StreamsException | None = None

    async def initialize(self, changelogs: Iterable[TopicPartition]) -> None:
        """Check that the changelog partitions exist; raise ClientTimeoutException or StreamsException."""
        for topic, index in changelogs:
            if index not in await self._partitions_of(topic):
                raise StreamsException(
                    f"task {self._task_id}: topic {topic} has no partition {index}; its partition count has changed",
                    self._task_id,
                )

    def add(
        self, topic: str, record: Record, *, partition: int | None = None, partitioner: Partitioner | None = None
    ) -> None:
        self._outgoing.append(_Outgoing(topic, record, partition, partitioner))

    def drop(self) -> None:
        self._outgoing.clear()

    async def settle(self) -> None:
        """Wait for pending sends, and discard failures, before the task restarts."""
        await self._producer.flush()
        self._failure = None

    async def send_all(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        for one in outgoing:
            await self._send(one)

    async def flush(self) -> None:
        await self._producer.flush()
        self._raise_failure()

    async def _send(self, one: _Outgoing) -> None:
        self._raise_failure()
        partition = one.partition
        if one.partitioner is not None:
            partition = one.partitioner(one.record, len(await self._partitions_of(one.topic)))
        record = one.record
        try:
            with client_call(f"Producer.send to {one.topic}"):
                sent = await self._producer.send(
                    one.topic,
                    record.value,
                    key=record.key,
                    partition=partition,
                    timestamp_ms=record.timestamp,
                    headers=record.headers,
                )
        except TimeoutException as error:
            if self._counts_blocking:
                raise
            self._failed(one.topic, error)
        except KafkaException as error:
            self._failed(one.topic, error)
        else:
            sent.add_done_callback(partial(self._sent, one.topic))

    async def _partitions_of(self, topic: str) -> Sequence[int]:
        try:
            with client_call(f"Producer.partitions_for {topic}"):
                return await self._producer.partitions_for(topic)
        except TimeoutException:
            raise
        except KafkaException as error:
            raise StreamsException(
                f"task {self._task_id}: cannot look up the partitions of topic {topic}: {error}", self._task_id
            ) from error

    def _sent(self, topic: str, sent: asyncio.Future[RecordMetadata]) -> None:
        error = None if sent.cancelled() else sent.exception()
        if error is not None:
            assert isinstance(error, KafkaException), error
            self._failed(topic, error)

    def _failed(self, topic: str, error: KafkaException) -> None:
        if self._failure is not None:
            return
        words = f"a record for topic {topic} was not delivered: {error}"
        log.error(f"task {self._task_id}: {words}", extra={"task": str(self._task_id), "topic": topic})
        self._failure = self._outcome(words, error)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _outcome(self, words: str, error: KafkaException) -> StreamsException:
        if isinstance(error, _FENCED):
            return TaskMigratedException(f"task {self._task_id}: {words}")
        if isinstance(error, RetriableException):
            return TaskCorruptedException([self._task_id], words)
        return StreamsException(f"task {self._task_id}: {words}", self._task_id)
