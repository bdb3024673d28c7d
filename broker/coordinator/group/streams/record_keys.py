"""The keys of Streams groups in __consumer_offsets. records.py has the values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from sluice.broker.coordinator.common.coordinator_log import KeyValue, encode_record
from sluice.protocol.message import Message
from sluice.protocol.types import Versions, string

GROUP_METADATA, MEMBER_METADATA, TARGET_METADATA, TARGET_MEMBER, CURRENT_ASSIGNMENT, TOPOLOGY = 17, 19, 20, 21, 22, 23


class StreamsGroupKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""


class StreamsMemberKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""
    member_id: string = ""


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
        (group_key(GROUP_METADATA, group_id), None),
        (group_key(TOPOLOGY, group_id), None),
    ]


def group_key(record_type: int, group_id: str) -> bytes:
    return encode_record(record_type, StreamsGroupKey(group_id=group_id), 0)


def member_key(record_type: int, group_id: str, member_id: str) -> bytes:
    return encode_record(record_type, StreamsMemberKey(group_id=group_id, member_id=member_id), 0)
