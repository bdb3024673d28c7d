"""The committed offsets of a group in OffsetCommit and OffsetFetch, for consumers and admin clients."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from sluice.client.metadata.cluster import NO_EPOCH, TopicPartition, by_partition, by_topic, values_by_topic
from sluice.client.network.in_flight import Request
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
)
from sluice.protocol.message import Message

LAST_BY_NAME = 9  # version of both APIs; later ones have topic ids
_FIRST_OF_MANY_GROUPS = 8  # version of OffsetFetch (KIP-709)

T = TypeVar("T")


class OffsetAndMetadata(NamedTuple):
    """A committed offset: the next offset to read, metadata, and the leader epoch of the last record before it."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_EPOCH


class GroupMetadata(NamedTuple):
    """A group member, which fences the offsets that a transaction commits for it (KIP-447)."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


def with_metadata(offset: int | OffsetAndMetadata) -> OffsetAndMetadata:
    return offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)


def commit_topics(
    offsets: Mapping[TopicPartition, OffsetAndMetadata], topic_of: Callable[..., T], partition_of: Callable[..., object]
) -> list[T]:
    """Return the topics of an OffsetCommit or TxnOffsetCommit."""
    return [
        topic_of(
            name=topic,
            partitions=[
                partition_of(
                    partition_index=index,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    committed_metadata=committed.metadata,
                )
                for index, committed in pairs
            ],
        )
        for topic, pairs in values_by_topic(offsets).items()
    ]


def offset_fetch(
    group_id: str, partitions: Iterable[TopicPartition] | None, *, require_stable: bool, oldest: int
) -> Request:
    topics = None
    if partitions is not None:
        named = by_topic(partitions).items()
        topics = [OffsetFetchRequestTopic(name=name, partition_indexes=found) for name, found in named]

    def build(version: int) -> Message:
        if version < _FIRST_OF_MANY_GROUPS:
            return OffsetFetchRequest(group_id=group_id, topics=topics, require_stable=require_stable)
        group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
        return OffsetFetchRequest(groups=[group], require_stable=require_stable)

    return Request(ApiKey.OFFSET_FETCH, build, oldest=oldest, latest=LAST_BY_NAME)


def fetched_offsets(response: OffsetFetchResponse) -> Mapping[TopicPartition, OffsetFetchResponsePartition]:
    grouped = by_partition(topic for group in response.groups for topic in group.topics)
    return {**by_partition(response.topics), **grouped}


def committed_offset(partition: OffsetFetchResponsePartition) -> OffsetAndMetadata | None:
    if partition.committed_offset < 0:
        return None
    return OffsetAndMetadata(partition.committed_offset, partition.metadata or "", partition.committed_leader_epoch)
