"""Restores the stores of tasks from their changelogs (Kafka's StoreChangelogReader).

One call of the admin client looks up the end offsets; its failure counts against `task.timeout.ms` of each task, an
empty poll does not.

Different on purpose: after a failed lookup, the next one waits for `retry.backoff.ms`, as the KIP requires.
"""

import logging
from collections.abc import Iterable

from sluice.client.admin import LATEST, AdminClient
from sluice.client.consumer import Consumer
from sluice.client.consumer.fetch.fetcher import OffsetOutOfRangeError
from sluice.client.consumer.record import ConsumerRecord
from sluice.client.errors import KafkaException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.clock import Clock, sleep_ms

from .errors import ClientTimeoutException, StreamsException, TaskCorruptedException, client_call
from .task import StreamTask

log = logging.getLogger("sluice.streams")


class _Changelog:
    def __init__(self, task: StreamTask, store: str) -> None:
        self.task = task
        self.store = store
        self.end_offset: int | None = None
        self.restored = 0
        self.is_complete = False


class ChangelogReader:
    def __init__(
        self, consumer: Consumer, admin: AdminClient, clock: Clock, poll_ms: int, retry_backoff_ms: int
    ) -> None:
        self.restored = 0
        self._consumer = consumer
        self._admin = admin
        self._clock = clock
        self._poll_ms = poll_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._changelogs: dict[TopicPartition, _Changelog] = {}

    def register(self, task: StreamTask) -> None:
        for partition, store in task.changelogs.items():
            self._changelogs[partition] = _Changelog(task, store)

    def unregister(self, task: StreamTask) -> None:
        for partition in task.changelogs:
            self._changelogs.pop(partition, None)
        self._consumer.assign(self._restoring())

    def is_restored(self, task: StreamTask) -> bool:
        return all(self._changelogs[partition].is_complete for partition in task.changelogs)

    async def restore(self) -> None:
        """Restore the records of one poll; raise StreamsException."""
        await self._find_ends()
        restoring = self._restoring()
        if not restoring:
            return
        try:
            records = await self._consumer.poll(self._poll_ms)
        except OffsetOutOfRangeError as error:
            raise self._corrupted(error) from error
        except KafkaException as error:
            raise StreamsException(f"changelogs cannot be read: {error}") from error
        for record in records:
            self._take(record)
        for partition in restoring:
            await self._check(partition)

    def _restoring(self) -> list[TopicPartition]:
        return [
            partition
            for partition, one in self._changelogs.items()
            if one.end_offset is not None and not one.is_complete
        ]

    # -- end offsets ---------------------------------------------------------------------------------------------------

    async def _find_ends(self) -> None:
        unknown = {partition: one for partition, one in self._changelogs.items() if one.end_offset is None}
        if not unknown:
            return
        try:
            with client_call("Admin.list_offsets of changelogs"):
                ends = (await self._admin.list_offsets(dict.fromkeys(unknown, LATEST))).all()
        except KafkaException as error:
            self._failed(unknown.values(), error)
            await sleep_ms(self._clock, self._retry_backoff_ms)
            return
        for partition, end in ends.items():
            unknown[partition].end_offset = end.offset
            unknown[partition].task.timeout.clear()
        new = [partition for partition in self._restoring() if partition in unknown]
        self._consumer.assign(self._restoring())
        self._consumer.seek_to_beginning(new)

    def _failed(self, changelogs: Iterable[_Changelog], error: KafkaException) -> None:
        """Count any error as a timeout, as in Kafka: a partition without a leader may get one."""
        if not isinstance(error, TimeoutException):
            error = ClientTimeoutException("Admin.list_offsets of changelogs", TimeoutException(str(error)))
        now_ms = int(self._clock.monotonic_ms())
        for task in {one.task.id: one.task for one in changelogs}.values():
            task.timeout.timed_out(now_ms, error)

    # -- records -------------------------------------------------------------------------------------------------------

    def _take(self, record: ConsumerRecord) -> None:
        changelog = self._changelogs.get(TopicPartition(record.topic, record.partition))
        if changelog is None or changelog.is_complete or changelog.end_offset is None:
            return
        if record.offset < changelog.end_offset and record.key is not None:
            changelog.task.stores[changelog.store].restore([(record.key, record.value)])
            changelog.task.timeout.clear()
            changelog.restored += 1
            self.restored += 1

    async def _check(self, partition: TopicPartition) -> None:
        """Complete the restoration if the position is at the end; the last offset may have no record."""
        changelog = self._changelogs.get(partition)
        if changelog is None or changelog.end_offset is None:
            return
        if changelog.end_offset > 0:
            try:
                with client_call(f"Consumer.position in changelog {partition}"):
                    position = await self._consumer.position(partition)
            except KafkaException as error:
                if self._changelogs.get(partition) is changelog:  # still registered
                    self._late(changelog.task, error)
                return
            if position < changelog.end_offset:
                return
        changelog.is_complete = True
        changelog.task.timeout.clear()
        self._consumer.assign(self._restoring())
        log.info(
            f"task {changelog.task.id}: store {changelog.store} restored, {changelog.restored} records",
            extra={"task": str(changelog.task.id), "changelog": str(partition)},
        )

    def _late(self, task: StreamTask, error: KafkaException) -> None:
        if not isinstance(error, TimeoutException):
            raise StreamsException(f"task {task.id}: its changelog cannot be read: {error}", task.id) from error
        task.timeout.timed_out(int(self._clock.monotonic_ms()), error)

    def _corrupted(self, error: OffsetOutOfRangeError) -> TaskCorruptedException:
        tasks = [one.task.id for partition, one in self._changelogs.items() if partition in error.offsets]
        return TaskCorruptedException(tasks, f"its changelog was truncated while it was read: {error}")
