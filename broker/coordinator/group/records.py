"""The records of committed offsets and classic groups in __consumer_offsets, as Kafka 4.4 writes them.

Follows GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, ClassVar

from sluice.broker.coordinator.common.coordinator_log import KeyValue, encode_record
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, bytes_, int32, int64, string, uuid

from .offsets import CommittedOffset

# Record types. 0, with the same key and value, is not written since Kafka 0.8.
LEGACY_OFFSET_COMMIT, OFFSET_COMMIT, GROUP_METADATA = 0, 1, 2
_GROUP_METADATA_VERSION = 3
_OFFSET_COMMIT_VERSION = 4
_EXPIRING_OFFSET_COMMIT_VERSION = 1  # the only version with an expiry timestamp


class OffsetCommitKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group: string = ""
    topic: string = ""
    partition: int32 = 0


class OffsetCommitValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="4+")

    offset: int64 = 0
    leader_epoch: Annotated[int32, V("3+")] = -1
    metadata: string = ""
    commit_timestamp: int64 = 0
    expire_timestamp: Annotated[int64, V("1")] = -1
    topic_id: Annotated[uuid, V("4+", tag=0)] = ZERO_UUID


class GroupMetadataKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group: string = ""


class MemberMetadata(Message):
    member_id: string = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = None
    client_id: string = ""
    client_host: string = ""
    rebalance_timeout: Annotated[int32, V("1+")] = -1
    session_timeout: int32 = 0
    subscription: bytes_ = b""
    assignment: bytes_ = b""


class GroupMetadataValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="4+")

    protocol_type: string = ""
    generation: int32 = 0
    protocol: Annotated[string | None, V("0+", null="0+")] = None
    leader: Annotated[string | None, V("0+", null="0+")] = None
    current_state_timestamp: Annotated[int64, V("2+")] = -1
    members: list[MemberMetadata] = []


def offset_commit(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> KeyValue:
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
    return _offset_key(group_id, topic, partition), encode_record(version, value, version)


def offset_tombstones(group_id: str, partitions: Iterable[tuple[str, int]]) -> list[KeyValue]:
    return [(_offset_key(group_id, topic, partition), None) for topic, partition in partitions]


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return encode_record(OFFSET_COMMIT, OffsetCommitKey(group=group_id, topic=topic, partition=partition), 0)


def group_metadata(group_id: str, value: GroupMetadataValue | None = None) -> KeyValue:
    """Return the record of a classic group; without a value, a tombstone."""
    key = encode_record(GROUP_METADATA, GroupMetadataKey(group=group_id), 0)
    return key, None if value is None else encode_record(_GROUP_METADATA_VERSION, value, _GROUP_METADATA_VERSION)
