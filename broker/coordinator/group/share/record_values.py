"""The values of share groups' records in __consumer_offsets, as Kafka 4.4 writes them; see modern_records.py."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.broker.coordinator.common.loader import RecordType
from sluice.broker.coordinator.group.modern_records import (
    GroupKey,
    RecordNumbers,
    TargetPartitionsValue,
    TopicPartitions,
)
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, int8, int32, int64, string, uuid

RECORDS = RecordNumbers(member=10, group=11, target_epoch=12, target=13, current=14)
STATE_PARTITIONS = 15


class ShareGroupMetadataValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    epoch: int32 = 0
    metadata_hash: int64 = 0


class ShareGroupMemberMetadataValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    rack_id: Annotated[string | None, V("0+", null="0+")] = None
    client_id: string = ""
    client_host: string = ""
    subscribed_topic_names: list[string] = []


class ShareGroupCurrentMemberAssignmentValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    member_epoch: int32 = 0
    previous_member_epoch: int32 = 0
    state: int8 = 0
    assigned_partitions: list[TopicPartitions] = []


class TopicPartitionsInfo(Message):
    topic_id: uuid = ZERO_UUID
    topic_name: string = ""
    partitions: list[int32] = []


class TopicInfo(Message):
    topic_id: uuid = ZERO_UUID
    topic_name: string = ""


class ShareGroupStatePartitionMetadataValue(Message):
    """The share partitions by the progress of their initialization at the share coordinator."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    initializing_topics: list[TopicPartitionsInfo] = []
    initialized_topics: list[TopicPartitionsInfo] = []
    deleting_topics: list[TopicInfo] = []


RECORD_TYPES = {
    **RECORDS.types(
        ShareGroupMetadataValue,
        ShareGroupMemberMetadataValue,
        TargetPartitionsValue,
        ShareGroupCurrentMemberAssignmentValue,
    ),
    STATE_PARTITIONS: RecordType(GroupKey, ShareGroupStatePartitionMetadataValue, range(1)),
}
