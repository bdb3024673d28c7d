"""The records of groups and offsets in __consumer_offsets, in the versions that Kafka 4.4 writes.

Follows Kafka's GroupCoordinatorRecordHelpers and the message definitions of its group-coordinator module. In front of a
key stands the record's type, in front of a value its version, each in two bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.protocol.codec.compile import encoder
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, bytes_, int32, int64, string, uuid

from .offsets import CommittedOffset

if TYPE_CHECKING:
    from sluice.broker.coordinator.group.classic.group import ClassicGroup

OFFSET_COMMIT, GROUP_METADATA = 1, 2  # record types
LEGACY_OFFSET_COMMIT = 0  # as 1; not written since Kafka 0.8
_OFFSET_COMMIT_VERSION = 4
_EXPIRING_OFFSET_COMMIT_VERSION = 1  # the one version that says when the offset expires
_GROUP_METADATA_VERSION = 3
_NO_TIMESTAMP = -1


class OffsetCommitKey(Message):
    """Which offset: of a group, in a partition."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group: string = ""
    topic: string = ""
    partition: int32 = 0


class OffsetCommitValue(Message):
    """The offset, and when it was committed."""

    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="4+")

    offset: int64 = 0
    leader_epoch: Annotated[int32, V("3+")] = -1
    metadata: string = ""
    commit_timestamp: int64 = 0
    expire_timestamp: Annotated[int64, V("1")] = -1
    topic_id: Annotated[uuid, V("4+", tag=0)] = ZERO_UUID


class GroupMetadataKey(Message):
    """Which classic group."""

    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group: string = ""


class MemberMetadata(Message):
    """One member of a generation."""

    member_id: string = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = None
    client_id: string = ""
    client_host: string = ""
    rebalance_timeout: Annotated[int32, V("1+")] = -1
    session_timeout: int32 = 0
    subscription: bytes_ = b""
    assignment: bytes_ = b""


class GroupMetadataValue(Message):
    """A generation of a classic group."""

    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="4+")

    protocol_type: string = ""
    generation: int32 = 0
    protocol: Annotated[string | None, V("0+", null="0+")] = None
    leader: Annotated[string | None, V("0+", null="0+")] = None
    current_state_timestamp: Annotated[int64, V("2+")] = -1
    members: list[MemberMetadata] = []


def offset_commit(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> KeyValue:
    """Says that an offset was committed."""
    expires = committed.expire_timestamp_ms is not None
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=-1 if committed.expire_timestamp_ms is None else committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    version = _EXPIRING_OFFSET_COMMIT_VERSION if expires else _OFFSET_COMMIT_VERSION
    return _offset_key(group_id, topic, partition), _value(value, version)


def offset_tombstones(group_id: str, partitions: Iterable[tuple[str, int]]) -> list[KeyValue]:
    """Say that these partitions have no committed offset any more."""
    return [(_offset_key(group_id, topic, partition), None) for topic, partition in partitions]


def group_metadata(group: ClassicGroup, assignments: dict[str, bytes]) -> KeyValue:
    """The group's generation as it is, with these assignments by member id."""
    members = [
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.metadata(group.protocol_name),
            assignment=assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=_NO_TIMESTAMP if group.state_since_ms is None else group.state_since_ms,
        members=members,
    )
    return _group_key(group.group_id), _value(value, _GROUP_METADATA_VERSION)


def new_group_metadata(group: ClassicGroup) -> KeyValue:
    """Says that there is a group, before its first generation."""
    assert group.state_since_ms is not None
    value = GroupMetadataValue(current_state_timestamp=group.state_since_ms)
    return _group_key(group.group_id), _value(value, _GROUP_METADATA_VERSION)


def group_tombstone(group_id: str) -> KeyValue:
    """Says that a classic group is no more."""
    return _group_key(group_id), None


def encode_record(number: int, message: Message, version: int) -> bytes:
    """A key or a value: its type or version in two bytes, then the message in `version`."""
    parts: list[bytes | memoryview] = [number.to_bytes(2)]
    encoder(type(message), version)(message, parts)
    return b"".join(parts)


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return encode_record(OFFSET_COMMIT, OffsetCommitKey(group=group_id, topic=topic, partition=partition), 0)


def _group_key(group_id: str) -> bytes:
    return encode_record(GROUP_METADATA, GroupMetadataKey(group=group_id), 0)


def _value(message: Message, version: int) -> bytes:
    return encode_record(version, message, version)
