"""The values of classic groups in __consumer_offsets, as Kafka 4.4 writes them (GroupCoordinatorRecordHelpers)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.broker.coordinator.common.coordinator_log import KeyValue, encode_record
from sluice.broker.coordinator.group.record_keys import group_metadata_key
from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, bytes_, int32, int64, string

from .group import ClassicGroup

_VERSION = 3
_NO_TIMESTAMP = -1


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


def group_metadata(group: ClassicGroup, assignments: dict[str, bytes]) -> KeyValue:
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
    return group_metadata_key(group.group_id), encode_record(_VERSION, value, _VERSION)


def new_group_metadata(group: ClassicGroup) -> KeyValue:
    assert group.state_since_ms is not None
    value = GroupMetadataValue(current_state_timestamp=group.state_since_ms)
    return group_metadata_key(group.group_id), encode_record(_VERSION, value, _VERSION)
