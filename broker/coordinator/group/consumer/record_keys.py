"""The keys of consumer groups in __consumer_offsets. records.py has the values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from sluice.broker.coordinator.common.coordinator_log import KeyValue, encode_record
from sluice.protocol.message import Message
from sluice.protocol.types import Versions, string

# Record types. 4, the topics of a group, is not written since 4.1: the metadata hash replaced it.
GROUP_METADATA, PARTITION_METADATA, MEMBER_METADATA = 3, 4, 5
TARGET_METADATA, TARGET_MEMBER, CURRENT_ASSIGNMENT, REGULAR_EXPRESSION = 6, 7, 8, 16


class GroupKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""


class MemberKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""
    member_id: string = ""


class RegularExpressionKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""
    regular_expression: string = ""


def regular_expression_tombstone(group_id: str, regex: str) -> KeyValue:
    return regex_key(group_id, regex), None


def partition_metadata_tombstone(group_id: str) -> KeyValue:
    return group_key(PARTITION_METADATA, group_id), None


def member_tombstones(group_id: str, member_id: str) -> list[KeyValue]:
    types = CURRENT_ASSIGNMENT, TARGET_MEMBER, MEMBER_METADATA
    return [(member_key(record_type, group_id, member_id), None) for record_type in types]


def group_tombstones(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> list[KeyValue]:
    members = list(member_ids)
    return [
        *((member_key(CURRENT_ASSIGNMENT, group_id, member_id), None) for member_id in members),
        *((member_key(TARGET_MEMBER, group_id, member_id), None) for member_id in members),
        (group_key(TARGET_METADATA, group_id), None),
        *((member_key(MEMBER_METADATA, group_id, member_id), None) for member_id in members),
        *(regular_expression_tombstone(group_id, regex) for regex in regexes),
        partition_metadata_tombstone(group_id),
        (group_key(GROUP_METADATA, group_id), None),
    ]


def group_key(record_type: int, group_id: str) -> bytes:
    return encode_record(record_type, GroupKey(group_id=group_id), 0)


def member_key(record_type: int, group_id: str, member_id: str) -> bytes:
    return encode_record(record_type, MemberKey(group_id=group_id, member_id=member_id), 0)


def regex_key(group_id: str, regex: str) -> bytes:
    key = RegularExpressionKey(group_id=group_id, regular_expression=regex)
    return encode_record(REGULAR_EXPRESSION, key, 0)
