"""Global tables, which contain all partitions of their topics (Kafka's GlobalStreamThread and GlobalStateManagerImpl).

A separate asyncio task, the "global thread", restores them before any stream thread starts, and then updates them.
During the restore, each client call has its own deadline, unlike in a task (`task_timeout`):

                                 Kafka, `profile="kafka"`               KIP-572, `profile="kip"`
    `task.timeout.ms=0`          the first timeout fails                the same
    other values                 a timeout at or after the deadline     the same
    before the next attempt      no wait                                `retry.backoff.ms`

A poll without records for `poll.ms` plus `request.timeout.ms` also counts as a timeout.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from sluice.client.config import Profile
from sluice.client.consumer import Consumer
from sluice.client.consumer.record import ConsumerRecord
from sluice.client.errors import KafkaException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.clock import Clock, sleep_ms

from .errors import StreamsException
from .store import GlobalTable

T = TypeVar("T")

log = logging.getLogger("sluice.streams")


class GlobalSettings(NamedTuple):
    task_timeout_ms: int
    retry_backoff_ms: int
    poll_ms: int
    request_timeout_ms: int
    profile: Profile


class GlobalThread:
    def __init__(self, topics: Mapping[str, str], consumer: Consumer, settings: GlobalSettings, clock: Clock) -> None:
        self.tables = {name: GlobalTable() for name in topics}
        self._topics = topics
        self._consumer = consumer
        self._settings = settings
        self._clock = clock
        self._positions: dict[TopicPartition, int] = {}

    async def restore(self) -> None:
        try:
            for name, topic in self._topics.items():
                await self._restore(name, topic)
        except StreamsException:
            raise
        except KafkaException as error:
            raise StreamsException(f"global tables cannot be read: {error}") from error

    async def run(self) -> None:
        try:
            self._consumer.assign(self._positions)
            for partition, position in self._positions.items():
                self._consumer.seek(partition, position)
            while True:
                self._take(await self._consumer.poll(self._settings.poll_ms))
        except KafkaException as error:
            raise StreamsException(f"global tables cannot be read: {error}") from error

    async def _restore(self, name: str, topic: str) -> None:
        indexes = await self._retried(lambda: self._consumer.partitions_for(topic), f"Consumer.partitions_for {topic}")
        partitions = [TopicPartition(topic, index) for index in indexes]
        ends = await self._retried(lambda: self._consumer.end_offsets(partitions), f"Consumer.end_offsets of {topic}")
        for partition in partitions:
            self._positions[partition] = await self._read_to(partition, ends[partition])
        log.info(f"global table {name}: restored, {len(self.tables[name])} keys")

    async def _read_to(self, partition: TopicPartition, end: int) -> int:
        """Read only this partition, so that records of others do not extend the deadline."""
        settings = self._settings
        deadline = _Deadline(settings.task_timeout_ms)
        self._consumer.assign([partition])
        self._consumer.seek_to_beginning([partition])
        while (position := await self._position(partition)) < end:
            records = await self._consumer.poll(settings.poll_ms + settings.request_timeout_ms)
            if records:
                deadline.clear()
                self._take(records)
            else:
                deadline.timed_out(self._now_ms(), f"no records were read from {partition}")
        return position

    async def _position(self, partition: TopicPartition) -> int:
        return await self._retried(lambda: self._consumer.position(partition), f"Consumer.position in {partition}")

    async def _retried(self, call: Callable[[], Awaitable[T]], name: str) -> T:
        settings = self._settings
        deadline = _Deadline(settings.task_timeout_ms)
        while True:
            try:
                return await call()
            except TimeoutException as error:
                if not settings.task_timeout_ms:
                    raise StreamsException(f"global tables: {name}: {error} (task.timeout.ms=0: no retry)") from error
                deadline.timed_out(self._now_ms(), f"{name}: {error}")
                log.warning(f"global tables: timeout of {name}; it will be retried", extra={"call": name})
            if settings.profile == "kip":
                await sleep_ms(self._clock, settings.retry_backoff_ms)

    def _now_ms(self) -> int:
        return int(self._clock.monotonic_ms())

    def _take(self, records: Iterable[ConsumerRecord]) -> None:
        names = {topic: [name for name, one in self._topics.items() if one == topic] for topic in self._topics.values()}
        for record in records:
            if record.key is not None:
                for name in names[record.topic]:
                    self.tables[name].update([(record.key, record.value)])


class _Deadline:
    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._at_ms: int | None = None

    def timed_out(self, now_ms: int, problem: str) -> None:
        if self._at_ms is None:
            self._at_ms = now_ms + self._timeout_ms
        elif now_ms >= self._at_ms:
            without_ms = now_ms - self._at_ms + self._timeout_ms
            raise StreamsException(
                f"global tables: {without_ms} ms without progress (task.timeout.ms={self._timeout_ms}): {problem}"
            )

    def clear(self) -> None:
        self._at_ms = None
