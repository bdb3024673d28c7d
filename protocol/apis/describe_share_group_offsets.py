"""DescribeShareGroupOffsets (key 90): start offsets of share groups (KIP-932).

v1: lag (KIP-1226).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequestTopic(Message):
    topic_name: Annotated[string, V(entity="topicName")] = ""
    partitions: Annotated[list[int32], V(entity="partition")] = []


class DescribeShareGroupOffsetsRequestGroup(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    topics: Annotated[list[DescribeShareGroupOffsetsRequestTopic] | None, V("0+", null="0+")] = []


class DescribeShareGroupOffsetsRequest(Message):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = []


class DescribeShareGroupOffsetsResponsePartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    start_offset: int64 = 0
    leader_epoch: int32 = 0
    lag: Annotated[int64, V("1+")] = -1
    error_code: Annotated[int16, V(errors="TOPIC_AUTHORIZATION_FAILED LEADER_NOT_AVAILABLE")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None


class DescribeShareGroupOffsetsResponseTopic(Message):
    topic_name: Annotated[string, V(entity="topicName")] = ""
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = []


class DescribeShareGroupOffsetsResponseGroup(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    topics: list[DescribeShareGroupOffsetsResponseTopic] = []
    error_code: Annotated[int16, V(errors="any coordinator GROUP_ID_NOT_FOUND")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None


class DescribeShareGroupOffsetsResponse(Message):
    throttle_time_ms: int32 = 0
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
