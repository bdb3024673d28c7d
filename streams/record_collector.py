"""What a task sends: to its sinks, its changelogs, its repartition topics (Kafka's RecordCollectorImpl).

While a record goes through the processors, what they send is collected; when it is through, it is given to the
producer. What that could not deliver, the task meets when it sends next, or commits:

    what a record failed with                         what is raised
    the producer is fenced, or out of sequence        TaskMigratedException
    what could have been retried for longer           TaskCorruptedException
    else: may not, does not fit, cannot be written    StreamsException: the thread dies

So `delivery.timeout.ms` being over never counts for `task.timeout.ms`. Nor does it with Kafka's producer when there is
no metadata, or no memory, for `max.block.ms`: that too comes to the callback. By KIP-572 each timeout of a client
counts, and with `profile="kip"` this one does. Asking for a topic's partitions, for a partitioner, counts with both.

Different on purpose: Kafka's tasks share the place where a failure waits for whoever sends next. Who met it in closing
a task could forget another's, and that one would commit what was not delivered.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from sluice.client import errors
from sluice.client.config import Profile
from sluice.client.consumer.record import Header
from sluice.client.errors import KafkaException, RetriableException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer import RecordMetadata

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


class TaskProducer(Protocol):
    """What is needed of the thread's producer."""

    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Sequence[Header] = (),
    ) -> asyncio.Future[RecordMetadata]: ...

    async def partitions_for(self, topic: str) -> Sequence[int]: ...

    async def flush(self) -> None: ...


class _Outgoing(NamedTuple):
    topic: str
    record: Record
    partition: int | None
    partitioner: Partitioner | None


class RecordCollector:
    """Of one task."""

    def __init__(self, task_id: TaskId, producer: TaskProducer, profile: Profile) -> None:
        self._task_id = task_id
        self._producer = producer
        self._counts_blocking = profile == "kip"
        self._outgoing: list[_Outgoing] = []
        self._failure: StreamsException | None = None

    async def initialize(self, changelogs: Iterable[TopicPartition]) -> None:
        """Sees that there are the partitions that the task's stores are kept in. Raises ClientTimeoutException."""
        for topic, index in changelogs:
            if index not in await self._partitions_of(topic):
                raise StreamsException(
                    f"task {self._task_id}: topic {topic} has no partition {index}: it was made for other partitions",
                    self._task_id,
                )

    def add(
        self, topic: str, record: Record, *, partition: int | None = None, partitioner: Partitioner | None = None
    ) -> None:
        """Collects what is to be sent."""
        self._outgoing.append(_Outgoing(topic, record, partition, partitioner))

    def drop(self) -> None:
        """Forgets what was collected and not sent: the record that it came from is processed again."""
        self._outgoing.clear()

    async def settle(self) -> None:
        """Waits until nothing is on its way, and forgets what failed: the task begins anew."""
        await self._producer.flush()
        self._failure = None

    async def send_all(self) -> None:
        """Gives what was collected to the producer. Raises what the table says, and ClientTimeoutException."""
        outgoing, self._outgoing = self._outgoing, []
        for one in outgoing:
            await self._send(one)

    async def flush(self) -> None:
        """Waits for everything to end. Raises what the table says."""
        await self._producer.flush()
        self._raise_failure()

    async def _send(self, one: _Outgoing) -> None:
        self._raise_failure()
        where = one.partition
        if one.partitioner is not None:
            where = one.partitioner(one.record, len(await self._partitions_of(one.topic)))
        record = one.record
        try:
            with client_call(f"Producer.send to {one.topic}"):
                sent = await self._producer.send(
                    one.topic,
                    record.value,
                    key=record.key,
                    partition=where,
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
                f"task {self._task_id}: cannot tell the partitions of topic {topic}: {error}", self._task_id
            ) from error

    def _sent(self, topic: str, sent: asyncio.Future[RecordMetadata]) -> None:
        error = None if sent.cancelled() else sent.exception()
        if error is not None:
            assert isinstance(error, KafkaException), error
            self._failed(topic, error)

    def _failed(self, topic: str, error: KafkaException) -> None:
        """The first failure counts: what comes after it comes of it."""
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
