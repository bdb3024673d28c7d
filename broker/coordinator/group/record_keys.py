"""The keys of classic groups in __consumer_offsets. classic/records.py has the values."""

from __future__ import annotations

from typing import ClassVar

from sluice.broker.coordinator.common.coordinator_log import KeyValue, encode_record
from sluice.protocol.message import Message
from sluice.protocol.types import Versions, string

GROUP_METADATA = 2


class GroupMetadataKey(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group: string = ""


def group_tombstone(group_id: str) -> KeyValue:
    return group_metadata_key(group_id), None


def group_metadata_key(group_id: str) -> bytes:
    return encode_record(GROUP_METADATA, GroupMetadataKey(group=group_id), 0)
