"""OffsetForLeaderEpoch (key 23): the end offset of a leader epoch, to detect truncation (KIP-101, KIP-320).

v1: returns the epoch found; v2: fencing, throttle time; v3: replica id.
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, int64, string


class OffsetForLeaderPartition(Message):
    partition: Annotated[int32, V(entity="partition")] = 0
    current_leader_epoch: Annotated[int32, V("2+")] = -1  # -1: do not check
    leader_epoch: int32 = 0


class OffsetForLeaderTopic(Message):
    topic: Annotated[string, V(entity="topicName")] = ""
    partitions: list[OffsetForLeaderPartition] = []


class OffsetForLeaderEpochRequest(Message):
    """Replica id -2 is a debugging consumer, allowed beyond the high watermark; -1 a normal one."""

    replica_id: Annotated[int32, V("3+")] = -2
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Message):
    """The end of the requested epoch or of the largest one below; -1 if unknown."""

    error_code: Annotated[int16, V(errors="any moved")] = 0
    partition: Annotated[int32, V(entity="partition")] = 0
    leader_epoch: Annotated[int32, V("1+")] = -1
    end_offset: int64 = -1


class OffsetForLeaderTopicResult(Message):
    topic: Annotated[string, V(entity="topicName")] = ""
    partitions: list[EpochEndOffset] = []


class OffsetForLeaderEpochResponse(Message):
    throttle_time_ms: Annotated[int32, V("2+")] = 0
    topics: list[OffsetForLeaderTopicResult] = []
