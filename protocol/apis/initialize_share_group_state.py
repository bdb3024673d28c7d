"""InitializeShareGroupState (key 83): the group coordinator initializes share partitions at the share coordinator."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int16, int32, int64, string, uuid


class PartitionData(Message):
    partition: Annotated[int32, V(entity="partition")] = 0
    state_epoch: int32 = 0
    start_offset: int64 = 0


class InitializeStateData(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[PartitionData] = []


class InitializeShareGroupStateRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    topics: list[InitializeStateData] = []


class PartitionResult(Message):
    partition: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any share_coordinator FENCED_STATE_EPOCH")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None


class InitializeStateResult(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[PartitionResult] = []


class InitializeShareGroupStateResponse(Message):
    results: Annotated[list[InitializeStateResult], V(answers="topics")] = []
