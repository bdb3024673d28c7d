"""The methods of Kafka clients that the Streams runtime uses; unit tests replace the clients."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from sluice.client.admin import NewTopic, Outcomes
from sluice.client.committed_offsets import OffsetAndMetadata
from sluice.client.consumer import RebalanceListener
from sluice.client.consumer.record import ConsumerRecord, Header, OffsetAndTimestamp
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer import RecordMetadata
from sluice.protocol.apis.describe_topic_partitions import DescribeTopicPartitionsResponseTopic
from sluice.protocol.apis.list_offsets import ListOffsetsPartitionResponse
from sluice.protocol.apis.metadata import MetadataResponseTopic


class StreamsConsumer(Protocol):
    @property
    def is_rebalancing(self) -> bool: ...

    def subscribe(self, topics: Iterable[str], *, listener: RebalanceListener | None = None) -> None: ...

    async def unsubscribe(self) -> None: ...

    def assign(self, partitions: Iterable[TopicPartition]) -> None: ...

    async def poll(self, timeout_ms: float) -> Sequence[ConsumerRecord]: ...

    async def position(self, partition: TopicPartition) -> int: ...

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None: ...

    async def partitions_for(self, topic: str) -> Sequence[int]: ...

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]: ...

    def assignment(self) -> set[TopicPartition]: ...

    def pause(self, partitions: Iterable[TopicPartition]) -> None: ...

    def resume(self, partitions: Iterable[TopicPartition]) -> None: ...

    def current_lag(self, partition: TopicPartition) -> int | None: ...

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None: ...

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None: ...

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None: ...

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]: ...

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, OffsetAndTimestamp | None]: ...


class StreamsProducer(Protocol):
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


class StreamsAdmin(Protocol):
    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> Outcomes[TopicPartition, ListOffsetsPartitionResponse]: ...

    async def describe_topics(
        self, names: Iterable[str]
    ) -> Outcomes[str, DescribeTopicPartitionsResponseTopic | MetadataResponseTopic]: ...

    async def create_topics(self, topics: Iterable[NewTopic]) -> Outcomes[str, object]: ...

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> Outcomes[TopicPartition, object]: ...
