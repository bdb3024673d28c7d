"""Deletes committed records of repartition topics (maybePurgeCommittedRecords of Kafka's TaskManager).

These topics have no retention limit. A separate asyncio task deletes the records; its failures are only logged.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping

from sluice.client.admin import AdminClient
from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import TopicPartition
from sluice.clock import Clock, sleep_ms

log = logging.getLogger("sluice.streams")


class RepartitionPurge:
    def __init__(self, topics: Collection[str], admin: AdminClient, clock: Clock, interval_ms: int) -> None:
        self._topics = topics
        self._admin = admin
        self._clock = clock
        self._interval_ms = max(1, interval_ms)
        self._before: dict[TopicPartition, int] = {}

    async def __aenter__(self) -> "RepartitionPurge":
        self._running = asyncio.ensure_future(self._run())
        return self

    async def __aexit__(self, *_exception: object) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        self._before |= {
            partition: offset.offset for partition, offset in offsets.items() if partition.topic in self._topics
        }

    async def _run(self) -> None:
        while True:
            await sleep_ms(self._clock, self._interval_ms)
            before, self._before = self._before, {}
            if before:
                await self._delete(before)

    async def _delete(self, before: Mapping[TopicPartition, int]) -> None:
        try:
            failed = (await self._admin.delete_records(before)).errors()
        except KafkaException as error:
            failed = dict.fromkeys(before, error)
        for partition, reason in failed.items():
            log.info(f"records of {partition} before {before[partition]} were not deleted: {reason}")
