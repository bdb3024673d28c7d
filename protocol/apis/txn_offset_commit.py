"""TxnOffsetCommit (key 28)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, int16, int32, int64, string, uuid


class TxnOffsetCommitRequestPartition(Message):
    """A part of the message."""

    partition_index: int32 = 0
    committed_offset: int64 = 0
    committed_leader_epoch: Annotated[int32, V("2+")] = -1
    committed_metadata: Annotated[string | None, V("0+", null="0+")] = ""


class TxnOffsetCommitRequestTopic(Message):
    """A part of the message."""

    name: Annotated[string, V("0-5")] = ""
    topic_id: Annotated[uuid, V("6+")] = ZERO_UUID
    partitions: list[TxnOffsetCommitRequestPartition] = []


class TxnOffsetCommitRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[Versions] = Versions("0-6", flexible="3+")

    transactional_id: string = ""
    group_id: string = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    generation_id_or_member_epoch: Annotated[int32, V("3+")] = -1
    member_id: Annotated[string, V("3+")] = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(Message):
    """A part of the message."""

    partition_index: int32 = 0
    error_code: int16 = 0


class TxnOffsetCommitResponseTopic(Message):
    """A part of the message."""

    name: Annotated[string, V("0-5")] = ""
    topic_id: Annotated[uuid, V("6+")] = ZERO_UUID
    partitions: list[TxnOffsetCommitResponsePartition] = []


class TxnOffsetCommitResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[Versions] = Versions("0-6", flexible="3+")

    throttle_time_ms: int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
