"""A share group (KIP-932): members, epochs, target assignment, and initialized partitions. Follows Kafka's ShareGroup.

A member changes to a new target at once, because members share partitions.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.assignors.spec import Assignment
from sluice.broker.coordinator.group.group import SHARE, Commit
from sluice.broker.coordinator.group.modern_group import ModernGroup
from sluice.broker.coordinator.group.modern_records import (
    assigned_partitions,
    of_group,
    partitions_by_topic,
    target_partitions,
)
from sluice.broker.coordinator.group.offsets import CommittedOffset
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from . import record_values as values
from .state_partitions import StatePartitions, Topics, TopicState

_NOTHING: Assignment = {}


class ShareMember(NamedTuple):
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""  # as Java prints an address: "/127.0.0.1"
    subscribed_topic_names: frozenset[str] = frozenset()
    assigned: Assignment = _NOTHING


_EMPTY, _STABLE = "Empty", "Stable"
_STABLE_MEMBER = 0


class ShareGroup(ModernGroup[ShareMember, Assignment]):
    partitions: StatePartitions | None = None  # None: never initialized any

    RECORDS = values.RECORDS
    type = SHARE
    listed_protocol_type = SHARE

    # -- the interface Group -------------------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return _STABLE if self.members else _EMPTY

    def commit_error(self, commit: Commit) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def offset_fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        return ErrorCode.NONE  # as for a missing group: no partition has a committed offset

    def offset_delete_error(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def retention_start_ms(self, committed: CommittedOffset) -> int | None:
        return None  # it has no committed offsets

    def tombstones(self) -> list[KeyValue]:
        return self._tombstones(of_group(values.STATE_PARTITIONS, self.group_id))

    # -- subscriptions -------------------------------------------------------------------------------------------------

    def subscriptions(self) -> set[frozenset[str]]:
        return {member.subscribed_topic_names for member in self.members.values()}

    @property
    def is_homogeneous(self) -> bool:
        return len(self.subscriptions()) <= 1

    def has_unassigned_partitions(self) -> bool:
        if self.partitions is None:
            return False
        assigned: dict[bytes, set[int]] = {}
        for target in self.target.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            self.is_subscribed_to(state.name) and assigned.get(topic_id, set()) != state.partitions
            for topic_id, state in self.partitions.initialized.items()
        )

    # -- records -------------------------------------------------------------------------------------------------------

    def group_value(self) -> Message:
        return values.ShareGroupMetadataValue(epoch=self.group_epoch, metadata_hash=self.metadata_hash)

    def member_value(self, member: ShareMember) -> Message:
        return values.ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
        )

    def target_value(self, target: Assignment) -> Message:
        return target_partitions(target)

    def current_value(self, member: ShareMember) -> Message:
        return values.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=_STABLE_MEMBER,
            assigned_partitions=target_partitions(member.assigned).topic_partitions,
        )

    def set_partitions(self, partitions: StatePartitions, name_of: Callable[[bytes], str]) -> KeyValue:
        """Change the progress of partitions; return its record."""
        self.partitions = partitions
        deleting = [values.TopicInfo(topic_id=one, topic_name=name_of(one)) for one in sorted(partitions.deleting)]
        value = values.ShareGroupStatePartitionMetadataValue(
            initializing_topics=_stored(partitions.initializing),
            initialized_topics=_stored(partitions.initialized),
            deleting_topics=deleting,
        )
        return of_group(values.STATE_PARTITIONS, self.group_id, value)

    # -- loading -------------------------------------------------------------------------------------------------------

    def replay(self, number: int, part: str, value: Message) -> None:
        if isinstance(value, values.ShareGroupMetadataValue):
            self.group_epoch, self.metadata_hash = value.epoch, value.metadata_hash
        elif isinstance(value, values.ShareGroupStatePartitionMetadataValue):
            self.partitions = StatePartitions(
                _states(value.initializing_topics),
                _states(value.initialized_topics),
                frozenset(one.topic_id for one in value.deleting_topics),
            )
        else:
            super().replay(number, part, value)

    def target_of(self, value: Message) -> Assignment:
        return assigned_partitions(value)

    def replay_member(self, member_id: str, stored: Message, current: Message | None) -> None:
        assert isinstance(stored, values.ShareGroupMemberMetadataValue)
        member = ShareMember(
            member_id,
            rack_id=stored.rack_id,
            client_id=stored.client_id,
            client_host=stored.client_host,
            subscribed_topic_names=frozenset(stored.subscribed_topic_names),
        )
        if current is not None:
            assert isinstance(current, values.ShareGroupCurrentMemberAssignmentValue)
            member = member._replace(
                member_epoch=current.member_epoch,
                previous_member_epoch=current.previous_member_epoch,
                assigned=partitions_by_topic(current.assigned_partitions),
            )
        self.members[member_id] = member


def _stored(topics: Topics) -> list[values.TopicPartitionsInfo]:
    return [
        values.TopicPartitionsInfo(topic_id=topic_id, topic_name=state.name, partitions=sorted(state.partitions))
        for topic_id, state in topics.items()
    ]


def _states(topics: Iterable[values.TopicPartitionsInfo]) -> Topics:
    return {one.topic_id: TopicState(one.topic_name, frozenset(one.partitions), 0) for one in topics}
