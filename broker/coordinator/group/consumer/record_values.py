"""The values of consumer groups' records in __consumer_offsets, as Kafka 4.4 writes them; see modern_records.py."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.broker.coordinator.common.loader import RecordType
from sluice.broker.coordinator.group.modern_records import GroupKey, PartKey, RecordNumbers, TargetPartitionsValue
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, bytes_, int8, int32, int64, string, uuid

RECORDS = RecordNumbers(group=3, member=5, target_epoch=6, target=7, current=8)
# The first is not written since 4.1: the metadata hash replaced it.
PARTITION_METADATA, REGULAR_EXPRESSION = 4, 16


class ConsumerGroupMetadataValue(Message):
    """The epoch of a group, and the hash of its topics (KIP-1101)."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    epoch: int32 = 0
    metadata_hash: Annotated[int64, V("0+", tag=0)] = 0


class ConsumerGroupPartitionMetadataValue(Message):
    """The topics of a group, of which nothing is read."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")


class ClassicProtocol(Message):
    name: string = ""
    metadata: bytes_ = b""


class ClassicMemberMetadata(Message):
    session_timeout_ms: int32 = 0
    supported_protocols: list[ClassicProtocol] = []


class ConsumerGroupMemberMetadataValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    instance_id: Annotated[string | None, V("0+", null="0+")] = None
    rack_id: Annotated[string | None, V("0+", null="0+")] = None
    client_id: string = ""
    client_host: string = ""
    subscribed_topic_names: list[string] = []
    subscribed_topic_regex: Annotated[string | None, V("0+", null="0+")] = None
    rebalance_timeout_ms: int32 = -1
    server_assignor: Annotated[string | None, V("0+", null="0+")] = None
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, V("0+", null="0+", tag=0)] = None


class EpochPartitions(Message):
    topic_id: uuid = ZERO_UUID
    partitions: list[int32] = []
    assignment_epochs: Annotated[list[int32] | None, V("0+", null="0+", tag=0)] = None


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    member_epoch: int32 = 0
    previous_member_epoch: int32 = 0
    state: int8 = 0
    assigned_partitions: list[EpochPartitions] = []
    partitions_pending_revocation: list[EpochPartitions] = []


class ConsumerGroupRegularExpressionValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    topics: list[string] = []
    version: int64 = 0
    timestamp: int64 = 0


RECORD_TYPES = {
    **RECORDS.types(
        ConsumerGroupMetadataValue,
        ConsumerGroupMemberMetadataValue,
        TargetPartitionsValue,
        ConsumerGroupCurrentMemberAssignmentValue,
    ),
    PARTITION_METADATA: RecordType(GroupKey, ConsumerGroupPartitionMetadataValue, range(1)),
    REGULAR_EXPRESSION: RecordType(PartKey, ConsumerGroupRegularExpressionValue, range(1)),
}
