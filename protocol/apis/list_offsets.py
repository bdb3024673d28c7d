"""ListOffsets (key 2): the offset for a timestamp, or for one of the special timestamps below zero.

-1 is the log end, -2 the log start, -3 the record with the largest timestamp (version 7, KIP-734), -4 the local log
start (8, KIP-405), -5 the last tiered offset (9, KIP-1005), -6 the earliest offset not yet uploaded (11, KIP-1023).

v0: requests several segment starts instead; v2: isolation level, throttle time; v4: leader epochs (KIP-320); v10:
timeout (KIP-1075).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int8, int16, int32, int64, string


class ListOffsetsPartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    current_leader_epoch: Annotated[int32, V("4+")] = -1  # -1: do not check
    timestamp: int64 = 0
    max_num_offsets: Annotated[int32, V("0")] = 1


class ListOffsetsTopic(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[ListOffsetsPartition] = []


class ListOffsetsRequest(Message):
    """The replica id of consumers is -1."""

    replica_id: int32 = 0
    isolation_level: Annotated[int8, V("2+")] = 0  # 0: read uncommitted, 1: read committed
    topics: list[ListOffsetsTopic] = []
    timeout_ms: Annotated[int32, V("10+")] = 0


class ListOffsetsPartitionResponse(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any moved UNSUPPORTED_FOR_MESSAGE_FORMAT OFFSET_NOT_AVAILABLE")] = 0
    old_style_offsets: Annotated[list[int64], V("0")] = []
    timestamp: Annotated[int64, V("1+")] = -1
    offset: Annotated[int64, V("1+")] = -1
    leader_epoch: Annotated[int32, V("4+")] = -1


class ListOffsetsTopicResponse(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[ListOffsetsPartitionResponse] = []


class ListOffsetsResponse(Message):
    throttle_time_ms: Annotated[int32, V("2+")] = 0
    topics: list[ListOffsetsTopicResponse] = []
