"""What the records of all groups with member epochs have in common in __consumer_offsets, as Kafka 4.4 writes them.

Follows GroupCoordinatorRecordHelpers and StreamsCoordinatorRecordHelpers. Each type of group has its own record types
for the same five things, besides others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar, NamedTuple

from sluice.broker.coordinator.common.coordinator_log import KeyValue, encode_record
from sluice.broker.coordinator.common.loader import RecordType
from sluice.broker.coordinator.group.assignors.spec import Assignment
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, int32, int64, string, uuid


class GroupKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""


class PartKey(Message):
    """The key of a part of a group: a member, or a regular expression."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""
    part: string = ""


class TargetMetadataValue(Message):
    """The epoch and time of the target assignment (KIP-1263)."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    assignment_epoch: int32 = 0
    assignment_timestamp: Annotated[int64, V("0+", tag=0)] = 0


class TopicPartitions(Message):
    topic_id: uuid = ZERO_UUID
    partitions: list[int32] = []


class TargetPartitionsValue(Message):
    """The target assignment of a member of a consumer or share group."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    topic_partitions: list[TopicPartitions] = []


class RecordNumbers(NamedTuple):
    """The record types of the group, of a member, and of the target and the current assignment."""

    group: int
    member: int
    target_epoch: int
    target: int
    current: int

    def types(
        self, group: type[Message], member: type[Message], target: type[Message], current: type[Message]
    ) -> dict[int, RecordType]:
        return {
            self.group: RecordType(GroupKey, group, range(1)),
            self.member: RecordType(PartKey, member, range(1)),
            self.target_epoch: RecordType(GroupKey, TargetMetadataValue, range(1)),
            self.target: RecordType(PartKey, target, range(1)),
            self.current: RecordType(PartKey, current, range(1)),
        }


def of_group(number: int, group_id: str, value: Message | None = None) -> KeyValue:
    """Return a record of a group; without a value, a tombstone."""
    return encode_record(number, GroupKey(group_id=group_id), 0), None if value is None else encode_record(0, value, 0)


def of_part(number: int, group_id: str, part: str, value: Message | None = None) -> KeyValue:
    key = encode_record(number, PartKey(group_id=group_id, part=part), 0)
    return key, None if value is None else encode_record(0, value, 0)


def target_partitions(target: Assignment) -> TargetPartitionsValue:
    topics = [TopicPartitions(topic_id=topic, partitions=sorted(those)) for topic, those in target.items()]
    return TargetPartitionsValue(topic_partitions=topics)


def assigned_partitions(value: Message) -> Assignment:
    assert isinstance(value, TargetPartitionsValue)
    return partitions_by_topic(value.topic_partitions)


def partitions_by_topic(topics: Iterable[TopicPartitions]) -> Assignment:
    return {one.topic_id: frozenset(one.partitions) for one in topics}
