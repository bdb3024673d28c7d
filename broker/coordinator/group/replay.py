"""The groups and offsets stored in a partition of __consumer_offsets.

Follows the `replay` methods of Kafka's GroupMetadataManager and OffsetMetadataManager. A classic group is restored as
Stable or Empty: rounds are not stored, nor are the protocols of a member except the selected one. A group with only
offsets becomes a simple group.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol

from sluice.broker.coordinator.common.loader import CompactedState, RecordReader, RecordType, StoredRecord
from sluice.broker.coordinator.group.classic.group import EMPTY, STABLE, ClassicGroup
from sluice.broker.coordinator.group.classic.member import ClassicMember
from sluice.broker.log.partition_log import PartitionLog
from sluice.protocol.apis.join_group import JoinGroupRequestProtocol
from sluice.protocol.message import Message

from .group import Group
from .modern_records import GroupKey, PartKey, RecordNumbers
from .offsets import CommittedOffset
from .records import (
    GROUP_METADATA,
    LEGACY_OFFSET_COMMIT,
    OFFSET_COMMIT,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from .runtime import Offset, Recovered

_NO_TIME = -1  # a commit with the default retention; a group record before version 2
_NO_REBALANCE_TIMEOUT = -1  # in version 0

_CLASSIC_RECORD_TYPES = {
    LEGACY_OFFSET_COMMIT: RecordType(OffsetCommitKey, OffsetCommitValue, range(1)),
    OFFSET_COMMIT: RecordType(OffsetCommitKey, OffsetCommitValue, range(5)),
    GROUP_METADATA: RecordType(GroupMetadataKey, GroupMetadataValue, range(5)),
}


class ReplayedGroup(Group, Protocol):
    """A group that is not classic. Follows the `replay` methods of GroupMetadataManager for its records."""

    RECORDS: ClassVar[RecordNumbers]

    def replay(self, number: int, part: str, value: Message) -> None: ...
    def replay_member(self, member_id: str, stored: Message, current: Message | None) -> None: ...


class _ModernGroups:
    """The groups that are not classic, of types that are imported when a record of theirs is read."""

    def __init__(self) -> None:
        self._record_types = dict(_CLASSIC_RECORD_TYPES)
        self._new_group: dict[int, Callable[[str], ReplayedGroup]] = {}
        self._groups: dict[tuple[Callable[[str], ReplayedGroup], str], ReplayedGroup] = {}
        self._members: dict[tuple[ReplayedGroup, str], dict[int, Message]] = {}

    def record_type_of(self, number: int) -> RecordType | None:
        if number not in self._record_types and number in _TYPES:
            record_types, new_group = _TYPES[number]()
            self._record_types |= record_types
            self._new_group |= dict.fromkeys(record_types, new_group)
        return self._record_types.get(number)

    def add(self, number: int, key: Message, value: Message) -> None:
        assert isinstance(key, GroupKey | PartKey)
        new_group = self._new_group[number]
        group = self._groups.get((new_group, key.group_id))
        if group is None:
            group = self._groups[new_group, key.group_id] = new_group(key.group_id)
        part = key.part if isinstance(key, PartKey) else ""
        if number in (group.RECORDS.member, group.RECORDS.current):
            self._members.setdefault((group, part), {})[number] = value
        else:
            group.replay(number, part, value)

    def groups(self) -> Mapping[str, Group]:
        for (group, member_id), values in sorted(self._members.items(), key=lambda item: item[0][1]):
            metadata = values.get(group.RECORDS.member)
            if metadata is not None:
                group.replay_member(member_id, metadata, values.get(group.RECORDS.current))
        return {group.group_id: group for group in self._groups.values()}


def _consumer_groups() -> tuple[Mapping[int, RecordType], Callable[[str], ReplayedGroup]]:
    from sluice.broker.coordinator.group.consumer import group, record_values

    return record_values.RECORD_TYPES, group.ConsumerGroup


def _share_groups() -> tuple[Mapping[int, RecordType], Callable[[str], ReplayedGroup]]:
    from sluice.broker.coordinator.group.share import group, record_values

    return record_values.RECORD_TYPES, group.ShareGroup


def _streams_groups() -> tuple[Mapping[int, RecordType], Callable[[str], ReplayedGroup]]:
    from sluice.broker.coordinator.group.streams import group, record_values

    return record_values.RECORD_TYPES, group.StreamsGroup


_TYPES = {
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), _consumer_groups),
    **dict.fromkeys(range(10, 16), _share_groups),
    **dict.fromkeys((17, 19, 20, 21, 22, 23), _streams_groups),
}


def recover(log: PartitionLog, now_ms: int) -> Recovered:
    """Return the groups and offsets in a partition's log; simple groups start at `now_ms` (wall clock)."""
    state = CompactedState(log)
    modern = _ModernGroups()
    reader = RecordReader(log.name, modern.record_type_of)
    recovered = Recovered({}, [], [])
    for key, stored in state.values.items():
        record = reader.read(key, stored)
        if record is not None:
            record_key, value = record
            if isinstance(record_key, OffsetCommitKey):
                assert isinstance(value, OffsetCommitValue)
                recovered.offsets.append(_offset(record_key, value, stored))
            elif isinstance(record_key, GroupMetadataKey):
                assert isinstance(value, GroupMetadataValue)
                recovered.groups[record_key.group] = _classic_group(record_key.group, value)
            else:
                modern.add(int.from_bytes(key[:2]), record_key, value)
    recovered.groups.update(modern.groups())
    for producer_id, values in state.pending.items():
        for key, stored in values.items():
            record = reader.read(key, stored)
            if record is not None and isinstance(record[0], OffsetCommitKey):
                assert isinstance(record[1], OffsetCommitValue)
                recovered.pending.append((producer_id, _offset(record[0], record[1], stored)))
    for offset in (*recovered.offsets, *(offset for _, offset in recovered.pending)):
        if offset.group_id not in recovered.groups:
            recovered.groups[offset.group_id] = ClassicGroup(offset.group_id, now_ms)
    reader.log_skipped()
    return recovered


def _offset(key: OffsetCommitKey, value: OffsetCommitValue, stored: StoredRecord) -> Offset:
    committed = CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=None if value.expire_timestamp == _NO_TIME else value.expire_timestamp,
        topic_id=value.topic_id,
        order=stored.offset,
    )
    return Offset(key.group, (key.topic, key.partition), committed)


def _classic_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    since_ms = value.current_state_timestamp
    group = ClassicGroup(group_id, None if since_ms == _NO_TIME else since_ms)
    group.generation_id = value.generation
    group.protocol_name = value.protocol
    for member in value.members:
        group.add(_classic_member(value, member))
    group.protocol_type = value.protocol_type or None
    group.state = STABLE if group.members else EMPTY
    group.leader_id = value.leader if value.leader in group.members else next(iter(group.members), None)
    group.update_subscribed_topics()
    return group


def _classic_member(value: GroupMetadataValue, stored: MemberMetadata) -> ClassicMember:
    timeout_ms = stored.rebalance_timeout
    member = ClassicMember(
        stored.member_id,
        stored.group_instance_id,
        stored.client_id,
        stored.client_host,
        stored.session_timeout if timeout_ms == _NO_REBALANCE_TIMEOUT else timeout_ms,
        stored.session_timeout,
        value.protocol_type,
        [JoinGroupRequestProtocol(name=value.protocol or "", metadata=stored.subscription)],
    )
    member.assignment = stored.assignment
    return member
