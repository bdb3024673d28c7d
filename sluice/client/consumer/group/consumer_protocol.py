"""Reads and writes the subscriptions and assignments of a classic group, opaque bytes to the coordinator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar

from sluice.client.metadata.cluster import TopicPartition, by_topic
from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decode_prefix, encoder
from sluice.protocol.consumer_protocol import NEWEST, Assignment, Subscription, TopicPartitions, version_of
from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int32


class PreviousAssignment(Message):
    """The user data of a sticky member; version 0 is that of clients before 2.3."""

    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="none")

    topics: list[TopicPartitions] = []
    generation_id: Annotated[int32, V("1+")] = -1


def subscription_bytes(
    topics: Iterable[str],
    owned: Iterable[TopicPartition],
    generation_id: int,
    rack: str = "",
    user_data: bytes | None = None,
) -> bytes:
    message = Subscription(
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=_topics(owned),
        generation_id=generation_id,
        rack_id=rack or None,
    )
    return _written(message)


def previous_assignment_bytes(partitions: Iterable[TopicPartition], generation_id: int) -> bytes:
    parts: list[bytes | memoryview] = []
    message = PreviousAssignment(topics=_topics(partitions), generation_id=generation_id)
    encoder(PreviousAssignment, 1)(message, parts)
    return b"".join(parts)


def read_previous_assignment(data: bytes | memoryview | None) -> PreviousAssignment:
    """Return an empty assignment for data that cannot be decoded, as Kafka does."""
    view = memoryview(data or b"")
    for version in (1, 0):
        try:
            return decode_prefix(PreviousAssignment, version)(view, 0, len(view))[0]
        except RemoteProtocolError:
            continue
    return PreviousAssignment()


def assignment_bytes(partitions: Iterable[TopicPartition]) -> bytes:
    return _written(Assignment(assigned_partitions=_topics(partitions)))


def read_subscription(data: bytes) -> Subscription:
    return decode_prefix(Subscription, version_of(data))(memoryview(data), 2, len(data))[0]


def read_assignment(data: bytes) -> list[TopicPartition]:
    """Return the assigned partitions, none for empty bytes; raise RemoteProtocolError."""
    if not data:
        return []
    message, _ = decode_prefix(Assignment, version_of(data))(memoryview(data), 2, len(data))
    return partitions_of(message.assigned_partitions)


def partitions_of(topics: Iterable[TopicPartitions]) -> list[TopicPartition]:
    return [TopicPartition(topic.topic, index) for topic in topics for index in topic.partitions]


def _topics(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    return [TopicPartitions(topic=name, partitions=indexes) for name, indexes in by_topic(sorted(partitions)).items()]


def _written(message: Subscription | Assignment) -> bytes:
    parts: list[bytes | memoryview] = [NEWEST.to_bytes(2)]
    encoder(type(message), NEWEST)(message, parts)
    return b"".join(parts)
