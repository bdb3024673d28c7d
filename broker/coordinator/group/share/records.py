"""The records of share groups in __consumer_offsets. Follows Kafka's GroupCoordinatorRecordHelpers."""

from collections.abc import Callable, Iterable

from sluice.broker.coordinator.common.coordinator_log import KeyValue, encode_record
from sluice.broker.coordinator.group.assignors.spec import Assignment
from sluice.protocol.message import Message

from .member import ShareMember
from .record_keys import (
    CURRENT_ASSIGNMENT,
    GROUP_METADATA,
    MEMBER_METADATA,
    STATE_PARTITIONS,
    TARGET_MEMBER,
    TARGET_METADATA,
    group_key,
    member_key,
)
from .record_values import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartitions,
    TopicPartitionsInfo,
)
from .state_partitions import StatePartitions, Topics

_STABLE = 0


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> KeyValue:
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return group_key(GROUP_METADATA, group_id), _value(value)


def member_metadata(group_id: str, member: ShareMember) -> KeyValue:
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
    )
    return member_key(MEMBER_METADATA, group_id, member.member_id), _value(value)


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> KeyValue:
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms)
    return group_key(TARGET_METADATA, group_id), _value(value)


def target_assignment(group_id: str, member_id: str, target: Assignment) -> KeyValue:
    value = ShareGroupTargetAssignmentMemberValue(topic_partitions=_topic_partitions(target))
    return member_key(TARGET_MEMBER, group_id, member_id), _value(value)


def current_assignment(group_id: str, member: ShareMember) -> KeyValue:
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=_STABLE,
        assigned_partitions=_topic_partitions(member.assigned),
    )
    return member_key(CURRENT_ASSIGNMENT, group_id, member.member_id), _value(value)


def state_partitions(group_id: str, partitions: StatePartitions, name_of: Callable[[bytes], str]) -> KeyValue:
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_topic_states(partitions.initializing),
        initialized_topics=_topic_states(partitions.initialized),
        deleting_topics=[TopicInfo(topic_id=one, topic_name=name_of(one)) for one in sorted(partitions.deleting)],
    )
    return group_key(STATE_PARTITIONS, group_id), _value(value)


def member_tombstones(group_id: str, member_id: str) -> list[KeyValue]:
    types = CURRENT_ASSIGNMENT, TARGET_MEMBER, MEMBER_METADATA
    return [(member_key(record_type, group_id, member_id), None) for record_type in types]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[KeyValue]:
    members = list(member_ids)
    return [
        *((member_key(CURRENT_ASSIGNMENT, group_id, member_id), None) for member_id in members),
        *((member_key(TARGET_MEMBER, group_id, member_id), None) for member_id in members),
        (group_key(TARGET_METADATA, group_id), None),
        *((member_key(MEMBER_METADATA, group_id, member_id), None) for member_id in members),
        (group_key(STATE_PARTITIONS, group_id), None),
        (group_key(GROUP_METADATA, group_id), None),
    ]


def _topic_partitions(assignment: Assignment) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=topic, partitions=sorted(those)) for topic, those in assignment.items()]


def _topic_states(topics: Topics) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=state.name, partitions=sorted(state.partitions))
        for topic_id, state in topics.items()
    ]


def _value(message: Message) -> bytes:
    return encode_record(0, message, 0)
