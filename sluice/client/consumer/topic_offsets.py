"""A consumer's offset and topic lookups for the application.

Kafka's OffsetFetcher.fetchOffsetsByTimes and TopicMetadataFetcher. Each coroutine has a deadline.
"""

import asyncio
from collections.abc import Mapping, Sequence

from sluice.client.backoff import Backoff
from sluice.client.consumer.fetch.offset_fetcher import FATAL, OffsetFetcher
from sluice.client.errors import RetriableException, TimeoutException, exception_of
from sluice.client.metadata.cluster import Node, TopicPartition, by_partition
from sluice.client.network.asyncio_network import AsyncNetwork
from sluice.protocol.apis.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse

from .metadata import ConsumerMetadata

OffsetsByPartition = Mapping[TopicPartition, ListOffsetsPartitionResponse]


class TopicOffsets:
    def __init__(
        self, network: AsyncNetwork, metadata: ConsumerMetadata, offsets: OffsetFetcher, backoff: Backoff
    ) -> None:
        self._network = network
        self._metadata = metadata
        self._offsets = offsets
        self._backoff = backoff  # between requests to leaders; metadata has a separate one

    async def partitions_of(self, topic: str, deadline_ms: float) -> Sequence[int]:
        self._metadata.add_transient([topic])
        try:
            while not (found := self._metadata.cluster.partitions_of(topic)):
                await self._next_metadata(f"topic {topic} was not known in time", deadline_ms)
                self._metadata.raise_topic_error(topic)
            return found
        finally:
            self._metadata.remove_transient([topic])

    async def list_offsets(self, timestamps: Mapping[TopicPartition, int], deadline_ms: float) -> OffsetsByPartition:
        topics = {partition.topic for partition in timestamps}
        done: dict[TopicPartition, ListOffsetsPartitionResponse] = {}
        self._metadata.add_transient(topics)
        try:
            for topic in topics:
                await self.partitions_of(topic, deadline_ms)
            attempts = 0
            while len(done) < len(timestamps):
                done |= await self._round({p: at for p, at in timestamps.items() if p not in done}, deadline_ms)
                if len(done) < len(timestamps):
                    await self._pause(self._backoff.backoff(attempts), deadline_ms)
                    attempts += 1
        finally:
            self._metadata.remove_transient(topics)
        return done

    async def _round(self, timestamps: Mapping[TopicPartition, int], deadline_ms: float) -> OffsetsByPartition:
        by_leader: dict[Node, dict[TopicPartition, int]] = {}
        for partition, timestamp in timestamps.items():
            leader = self._metadata.current_leader(partition).leader
            if leader is not None:
                by_leader.setdefault(leader, {})[partition] = timestamp
        requested = [self._list_offsets_of(leader, of_leader, deadline_ms) for leader, of_leader in by_leader.items()]
        found = {partition: one for received in await asyncio.gather(*requested) for partition, one in received.items()}
        if len(found) < len(timestamps):
            self._metadata.request_update()
        return found

    async def _list_offsets_of(
        self, leader: Node, timestamps: Mapping[TopicPartition, int], deadline_ms: float
    ) -> OffsetsByPartition:
        request = self._offsets.list_offsets(timestamps)
        left_ms = deadline_ms - self._network.clock.monotonic_ms()
        request.timeout_ms = int(max(1, min(left_ms, self._network.client.request_timeout_ms)))
        try:
            response = await self._network.request(leader, request)
        except RetriableException:
            return {}
        assert isinstance(response, ListOffsetsResponse), type(response).__name__
        received = {}
        for partition, one in by_partition(response.topics).items():
            if one.error_code in FATAL:
                raise exception_of(one.error_code, f"{partition}: {exception_of(one.error_code)}")
            if not one.error_code:
                received[partition] = one
        return received

    async def _next_metadata(self, otherwise: str, deadline_ms: float) -> None:
        self._network.raise_if_closed()
        version = self._metadata.update_version
        if not self._metadata.update_requested:
            self._metadata.request_update()
        try:
            await self._network.metadata_after(version, deadline_ms)
        except TimeoutException:
            raise TimeoutException(otherwise) from None

    async def _pause(self, ms: float, deadline_ms: float) -> None:
        until_ms = self._network.clock.monotonic_ms() + ms
        if until_ms >= deadline_ms:
            raise TimeoutException("not all leaders returned offsets in time")
        while self._network.clock.monotonic_ms() < until_ms:
            self._network.raise_if_closed()
            await self._network.wait(until_ms)
