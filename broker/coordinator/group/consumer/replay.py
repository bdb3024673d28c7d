"""The consumer groups stored in a partition of __consumer_offsets.

Follows the `replay` methods of Kafka's GroupMetadataManager for the ConsumerGroup* records, and
ConsumerGroupMember.Builder. Different on purpose: a partition that the records assign to two members, which no
coordinator writes, belongs to the first; Kafka fails to load such a log.
"""

from collections.abc import Iterable

from sluice.broker.coordinator.common.loader import RecordType
from sluice.protocol.message import Message

from .group import ConsumerGroup
from .member import ClassicMetadata, ConsumerMember, MemberState
from .record_keys import (
    CURRENT_ASSIGNMENT,
    GROUP_METADATA,
    MEMBER_METADATA,
    PARTITION_METADATA,
    REGULAR_EXPRESSION,
    TARGET_MEMBER,
    TARGET_METADATA,
    GroupKey,
    MemberKey,
    RegularExpressionKey,
)
from .records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicPartitions,
)
from .topic_regex import ResolvedRegex

_V0 = range(1)
CONSUMER_RECORD_TYPES = {
    GROUP_METADATA: RecordType(GroupKey, ConsumerGroupMetadataValue, _V0),
    PARTITION_METADATA: RecordType(GroupKey, ConsumerGroupPartitionMetadataValue, _V0),
    MEMBER_METADATA: RecordType(MemberKey, ConsumerGroupMemberMetadataValue, _V0),
    TARGET_METADATA: RecordType(GroupKey, ConsumerGroupTargetAssignmentMetadataValue, _V0),
    TARGET_MEMBER: RecordType(MemberKey, ConsumerGroupTargetAssignmentMemberValue, _V0),
    CURRENT_ASSIGNMENT: RecordType(MemberKey, ConsumerGroupCurrentMemberAssignmentValue, _V0),
    REGULAR_EXPRESSION: RecordType(RegularExpressionKey, ConsumerGroupRegularExpressionValue, _V0),
}


class ConsumerGroupBuilder:
    __slots__ = ("_current", "_groups", "_metadata")

    def __init__(self) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._metadata: dict[tuple[str, str], ConsumerGroupMemberMetadataValue] = {}
        self._current: dict[tuple[str, str], ConsumerGroupCurrentMemberAssignmentValue] = {}

    def add(self, key: Message, value: Message) -> None:
        assert isinstance(key, GroupKey | MemberKey | RegularExpressionKey)
        group = self._groups.get(key.group_id)
        if group is None:
            group = self._groups[key.group_id] = ConsumerGroup(key.group_id)
        if isinstance(key, GroupKey):
            _add_group_record(group, value)
        elif isinstance(key, RegularExpressionKey):
            assert isinstance(value, ConsumerGroupRegularExpressionValue)
            resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
            group.regexes[key.regular_expression] = resolved
        elif isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
            targets = {one.topic_id: frozenset(one.partitions) for one in value.topic_partitions}
            group.target[key.member_id] = targets
        elif isinstance(value, ConsumerGroupMemberMetadataValue):
            self._metadata[key.group_id, key.member_id] = value
        else:
            assert isinstance(value, ConsumerGroupCurrentMemberAssignmentValue)
            self._current[key.group_id, key.member_id] = value

    def groups(self) -> dict[str, ConsumerGroup]:
        for group_id, member_id in sorted(self._metadata):
            group = self._groups[group_id]
            member = _member(member_id, self._metadata[group_id, member_id])
            group.put(_with_current(group, member, self._current.get((group_id, member_id))))
        return self._groups


def _add_group_record(group: ConsumerGroup, value: Message) -> None:
    if isinstance(value, ConsumerGroupMetadataValue):
        group.group_epoch, group.metadata_hash = value.epoch, value.metadata_hash
    elif isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
        group.assignment_epoch, group.assignment_timestamp_ms = value.assignment_epoch, value.assignment_timestamp
    else:
        group.has_partition_metadata = True


def _member(member_id: str, stored: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
    classic = stored.classic_member_metadata
    return ConsumerMember(
        member_id,
        instance_id=stored.instance_id,
        rack_id=stored.rack_id,
        rebalance_timeout_ms=stored.rebalance_timeout_ms,
        client_id=stored.client_id,
        client_host=stored.client_host,
        subscribed_topic_names=frozenset(stored.subscribed_topic_names),
        subscribed_topic_regex=stored.subscribed_topic_regex or "",
        server_assignor=stored.server_assignor,
        classic=None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms, tuple((one.name, one.metadata) for one in classic.supported_protocols)
        ),
    )


def _with_current(
    group: ConsumerGroup, member: ConsumerMember, current: ConsumerGroupCurrentMemberAssignmentValue | None
) -> ConsumerMember:
    """Return the member with its current assignment; without one, it is about to join."""
    if current is None:
        return member
    taken: set[tuple[bytes, int]] = set()
    # Epochs of partitions are written since 4.1. The epoch is -2 while a static member is away.
    epoch = max(current.member_epoch, 0)
    return member._replace(
        member_epoch=current.member_epoch,
        previous_member_epoch=current.previous_member_epoch,
        state=MemberState(current.state),
        assigned=_with_epochs(group, current.assigned_partitions, epoch, taken),
        pending_revocation=_with_epochs(group, current.partitions_pending_revocation, epoch, taken),
    )


def _with_epochs(
    group: ConsumerGroup, topics: Iterable[TopicPartitions], epoch: int, taken: set[tuple[bytes, int]]
) -> dict[bytes, dict[int, int]]:
    assigned: dict[bytes, dict[int, int]] = {}
    for one in topics:
        epochs = one.assignment_epochs
        if epochs is None or len(epochs) != len(one.partitions):
            epochs = [epoch] * len(one.partitions)
        for partition, since in zip(one.partitions, epochs, strict=True):
            where = one.topic_id, partition
            if where not in taken and group.owner_of(*where) is None:
                taken.add(where)
                assigned.setdefault(one.topic_id, {})[partition] = since
    return assigned
