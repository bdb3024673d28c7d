"""OffsetCommit (key 8)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, int16, int32, int64, string, uuid


class OffsetCommitRequestPartition(Message):
    """A part of the message."""

    partition_index: int32 = 0
    committed_offset: int64 = 0
    committed_leader_epoch: Annotated[int32, V("6+")] = -1
    commit_timestamp: Annotated[int64, V("1")] = -1
    committed_metadata: Annotated[string | None, V("0+", null="0+")] = ""


class OffsetCommitRequestTopic(Message):
    """A part of the message."""

    name: Annotated[string, V("0-9")] = ""
    topic_id: Annotated[uuid, V("10+")] = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = []


class OffsetCommitRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[Versions] = Versions("0-10", flexible="8+")

    group_id: string = ""
    generation_id_or_member_epoch: Annotated[int32, V("1+")] = -1
    member_id: Annotated[string, V("1+")] = ""
    group_instance_id: Annotated[string | None, V("7+", null="7+")] = None
    retention_time_ms: Annotated[int64, V("2-4")] = -1
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Message):
    """A part of the message."""

    partition_index: int32 = 0
    error_code: int16 = 0


class OffsetCommitResponseTopic(Message):
    """A part of the message."""

    name: Annotated[string, V("0-9")] = ""
    topic_id: Annotated[uuid, V("10+")] = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[Versions] = Versions("0-10", flexible="8+")

    throttle_time_ms: Annotated[int32, V("3+")] = 0
    topics: list[OffsetCommitResponseTopic] = []
