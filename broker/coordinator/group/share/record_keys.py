"""The keys of share groups in __consumer_offsets. records.py has the values."""

from __future__ import annotations

from typing import ClassVar

from sluice.broker.coordinator.common.coordinator_log import encode_record
from sluice.protocol.message import Message
from sluice.protocol.types import Versions, string

MEMBER_METADATA, GROUP_METADATA, TARGET_METADATA, TARGET_MEMBER, CURRENT_ASSIGNMENT, STATE_PARTITIONS = range(10, 16)


class ShareGroupKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""


class ShareMemberKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""
    member_id: string = ""


def group_key(record_type: int, group_id: str) -> bytes:
    return encode_record(record_type, ShareGroupKey(group_id=group_id), 0)


def member_key(record_type: int, group_id: str, member_id: str) -> bytes:
    return encode_record(record_type, ShareMemberKey(group_id=group_id, member_id=member_id), 0)
