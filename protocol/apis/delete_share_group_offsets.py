"""DeleteShareGroupOffsets (key 92): deletes the offsets of an empty share group's topics (KIP-932)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int16, int32, string, uuid


class DeleteShareGroupOffsetsRequestTopic(Message):
    topic_name: Annotated[string, V(entity="topicName")] = ""


class DeleteShareGroupOffsetsRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []


class DeleteShareGroupOffsetsResponseTopic(Message):
    topic_name: Annotated[string, V(entity="topicName")] = ""
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    error_code: Annotated[int16, V(errors="share_offset")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None


class DeleteShareGroupOffsetsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any coordinator GROUP_ID_NOT_FOUND NON_EMPTY_GROUP")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    responses: Annotated[list[DeleteShareGroupOffsetsResponseTopic], V(answers="topics")] = []
