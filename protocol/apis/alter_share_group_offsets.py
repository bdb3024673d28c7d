"""AlterShareGroupOffsets (key 91): sets start offsets of an empty share group (KIP-932)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequestPartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    start_offset: int64 = 0


class AlterShareGroupOffsetsRequestTopic(Message):
    topic_name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[AlterShareGroupOffsetsRequestPartition] = []


class AlterShareGroupOffsetsRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    topics: list[AlterShareGroupOffsetsRequestTopic] = []


class AlterShareGroupOffsetsResponsePartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="share_offset")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None


class AlterShareGroupOffsetsResponseTopic(Message):
    topic_name: Annotated[string, V(entity="topicName")] = ""
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[AlterShareGroupOffsetsResponsePartition] = []


class AlterShareGroupOffsetsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any coordinator GROUP_ID_NOT_FOUND NON_EMPTY_GROUP")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    responses: Annotated[list[AlterShareGroupOffsetsResponseTopic], V(answers="topics")] = []
