"""ReadShareGroupStateSummary (key 87): the group coordinator reads start offsets of share partitions.

v1: number of offsets with completed delivery (KIP-1226).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int16, int32, int64, string, uuid

from .read_share_group_state import ReadStateData


class ReadShareGroupStateSummaryRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    topics: list[ReadStateData] = []


class PartitionResult(Message):
    partition: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any share_state FENCED_LEADER_EPOCH")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    state_epoch: int32 = 0
    leader_epoch: int32 = 0
    start_offset: int64 = 0
    delivery_complete_count: Annotated[int32, V("1+")] = -1


class ReadStateSummaryResult(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[PartitionResult] = []


class ReadShareGroupStateSummaryResponse(Message):
    results: Annotated[list[ReadStateSummaryResult], V(answers="topics")] = []
