"""DeleteShareGroupState (key 86): the group coordinator deletes share partitions at the share coordinator."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int16, int32, string, uuid


class PartitionData(Message):
    partition: Annotated[int32, V(entity="partition")] = 0


class DeleteStateData(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[PartitionData] = []


class DeleteShareGroupStateRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    topics: list[DeleteStateData] = []


class PartitionResult(Message):
    partition: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any share_state FENCED_STATE_EPOCH")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None


class DeleteStateResult(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[PartitionResult] = []


class DeleteShareGroupStateResponse(Message):
    results: Annotated[list[DeleteStateResult], V(answers="topics")] = []
