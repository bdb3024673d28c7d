"""The records of consumer groups in __consumer_offsets, as Kafka 4.4 writes them (GroupCoordinatorRecordHelpers)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.broker.coordinator.common.coordinator_log import KeyValue, encode_record
from sluice.broker.coordinator.group.assignors.spec import Assignment
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, bytes_, int8, int32, int64, string, uuid

from .group import ConsumerGroup
from .member import ConsumerMember, PartitionEpochs
from .record_keys import (
    CURRENT_ASSIGNMENT,
    GROUP_METADATA,
    MEMBER_METADATA,
    TARGET_MEMBER,
    TARGET_METADATA,
    group_key,
    member_key,
    regex_key,
)
from .topic_regex import ResolvedRegex


class ConsumerGroupMetadataValue(Message):
    """The epoch of a group, and the hash of its topics (KIP-1101)."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    epoch: int32 = 0
    metadata_hash: Annotated[int64, V("0+", tag=0)] = 0


class PartitionRacks(Message):
    partition: int32 = 0
    racks: list[string] = []


class TopicMetadata(Message):
    topic_id: uuid = ZERO_UUID
    topic_name: string = ""
    num_partitions: int32 = 0
    partition_metadata: list[PartitionRacks] = []


class ConsumerGroupPartitionMetadataValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    topics: list[TopicMetadata] = []


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


class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """The epoch and time of the target assignment (KIP-1263)."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    assignment_epoch: int32 = 0
    assignment_timestamp: Annotated[int64, V("0+", tag=0)] = 0


class TargetTopicPartitions(Message):
    topic_id: uuid = ZERO_UUID
    partitions: list[int32] = []


class ConsumerGroupTargetAssignmentMemberValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    topic_partitions: list[TargetTopicPartitions] = []


class TopicPartitions(Message):
    topic_id: uuid = ZERO_UUID
    partitions: list[int32] = []
    assignment_epochs: Annotated[list[int32] | None, V("0+", null="0+", tag=0)] = None


class ConsumerGroupCurrentMemberAssignmentValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    member_epoch: int32 = 0
    previous_member_epoch: int32 = 0
    state: int8 = 0
    assigned_partitions: list[TopicPartitions] = []
    partitions_pending_revocation: list[TopicPartitions] = []


class ConsumerGroupRegularExpressionValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    topics: list[string] = []
    version: int64 = 0
    timestamp: int64 = 0


def group_epoch(group: ConsumerGroup) -> KeyValue:
    value = ConsumerGroupMetadataValue(epoch=group.group_epoch, metadata_hash=group.metadata_hash)
    return group_key(GROUP_METADATA, group.group_id), _value(value)


def member_metadata(group_id: str, member: ConsumerMember) -> KeyValue:
    classic = member.classic
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in classic.protocols],
        ),
    )
    return member_key(MEMBER_METADATA, group_id, member.member_id), _value(value)


def target_epoch(group: ConsumerGroup) -> KeyValue:
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=group.assignment_epoch, assignment_timestamp=group.assignment_timestamp_ms
    )
    return group_key(TARGET_METADATA, group.group_id), _value(value)


def target_assignment(group_id: str, member_id: str, target: Assignment) -> KeyValue:
    topics = [TargetTopicPartitions(topic_id=topic, partitions=sorted(those)) for topic, those in target.items()]
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics)
    return member_key(TARGET_MEMBER, group_id, member_id), _value(value)


def current_assignment(group_id: str, member: ConsumerMember) -> KeyValue:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=_with_epochs(member.assigned),
        partitions_pending_revocation=_with_epochs(member.pending_revocation),
    )
    return member_key(CURRENT_ASSIGNMENT, group_id, member.member_id), _value(value)


def regular_expression(group_id: str, regex: str, resolved: ResolvedRegex) -> KeyValue:
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return regex_key(group_id, regex), _value(value)


def _with_epochs(partitions: PartitionEpochs) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic, epochs in partitions.items()
    ]


def _value(message: Message) -> bytes:
    return encode_record(0, message, 0)
