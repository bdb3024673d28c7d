"""The share groups in __consumer_offsets. Follows the `replay` methods of Kafka's GroupMetadataManager."""

from collections.abc import Iterable

from sluice.broker.coordinator.common.loader import RecordType
from sluice.protocol.message import Message

from . import record_keys
from .group import ShareGroup
from .member import ShareMember
from .record_keys import ShareGroupKey, ShareMemberKey
from .record_values import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartitionsInfo,
)
from .state_partitions import StatePartitions, TopicState

SHARE_RECORD_TYPES = {
    record_keys.MEMBER_METADATA: RecordType(ShareMemberKey, ShareGroupMemberMetadataValue, range(1)),
    record_keys.GROUP_METADATA: RecordType(ShareGroupKey, ShareGroupMetadataValue, range(1)),
    record_keys.TARGET_METADATA: RecordType(ShareGroupKey, ShareGroupTargetAssignmentMetadataValue, range(1)),
    record_keys.TARGET_MEMBER: RecordType(ShareMemberKey, ShareGroupTargetAssignmentMemberValue, range(1)),
    record_keys.CURRENT_ASSIGNMENT: RecordType(ShareMemberKey, ShareGroupCurrentMemberAssignmentValue, range(1)),
    record_keys.STATE_PARTITIONS: RecordType(ShareGroupKey, ShareGroupStatePartitionMetadataValue, range(1)),
}


class ShareGroupBuilder:
    __slots__ = ("_current", "_groups", "_metadata")

    def __init__(self) -> None:
        self._groups: dict[str, ShareGroup] = {}
        self._metadata: dict[tuple[str, str], ShareGroupMemberMetadataValue] = {}
        self._current: dict[tuple[str, str], ShareGroupCurrentMemberAssignmentValue] = {}

    def add(self, key: Message, value: Message) -> None:
        assert isinstance(key, ShareGroupKey | ShareMemberKey)
        group = self._groups.get(key.group_id)
        if group is None:
            group = self._groups[key.group_id] = ShareGroup(key.group_id)
        if isinstance(key, ShareGroupKey):
            _add_group_record(group, value)
        elif isinstance(value, ShareGroupTargetAssignmentMemberValue):
            targets = {one.topic_id: frozenset(one.partitions) for one in value.topic_partitions}
            group.target[key.member_id] = targets
        elif isinstance(value, ShareGroupMemberMetadataValue):
            self._metadata[key.group_id, key.member_id] = value
        else:
            assert isinstance(value, ShareGroupCurrentMemberAssignmentValue)
            self._current[key.group_id, key.member_id] = value

    def groups(self) -> dict[str, ShareGroup]:
        for group_id, member_id in sorted(self._metadata):
            member = _member(member_id, self._metadata[group_id, member_id])
            current = self._current.get((group_id, member_id))
            if current is not None:
                member = member._replace(
                    member_epoch=current.member_epoch,
                    previous_member_epoch=current.previous_member_epoch,
                    assigned={one.topic_id: frozenset(one.partitions) for one in current.assigned_partitions},
                )
            self._groups[group_id].members[member_id] = member
        return self._groups


def _add_group_record(group: ShareGroup, value: Message) -> None:
    if isinstance(value, ShareGroupMetadataValue):
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
    elif isinstance(value, ShareGroupTargetAssignmentMetadataValue):
        group.assignment_epoch, group.assignment_timestamp_ms = value.assignment_epoch, value.assignment_timestamp
    else:
        assert isinstance(value, ShareGroupStatePartitionMetadataValue)
        group.partitions = StatePartitions(
            _topic_states(value.initializing_topics),
            _topic_states(value.initialized_topics),
            frozenset(one.topic_id for one in value.deleting_topics),
        )


def _topic_states(topics: Iterable[TopicPartitionsInfo]) -> dict[bytes, TopicState]:
    return {one.topic_id: TopicState(one.topic_name, frozenset(one.partitions), 0) for one in topics}


def _member(member_id: str, stored: ShareGroupMemberMetadataValue) -> ShareMember:
    return ShareMember(
        member_id,
        rack_id=stored.rack_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        subscribed_topic_names=frozenset(stored.subscribed_topic_names),
    )
