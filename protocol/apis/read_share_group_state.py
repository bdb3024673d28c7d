"""ReadShareGroupState (key 84): a partition's leader reads the state of share partitions from the share coordinator."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int8, int16, int32, int64, string, uuid


class PartitionData(Message):
    partition: Annotated[int32, V(entity="partition")] = 0
    leader_epoch: int32 = 0


class ReadStateData(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[PartitionData] = []


class ReadShareGroupStateRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    topics: list[ReadStateData] = []


class StateBatch(Message):
    first_offset: int64 = 0
    last_offset: int64 = 0
    delivery_state: int8 = 0
    delivery_count: int16 = 0


class PartitionResult(Message):
    partition: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any share_state FENCED_LEADER_EPOCH")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    state_epoch: int32 = 0
    start_offset: int64 = 0
    state_batches: list[StateBatch] = []


class ReadStateResult(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[PartitionResult] = []


class ReadShareGroupStateResponse(Message):
    results: Annotated[list[ReadStateResult], V(answers="topics")] = []
