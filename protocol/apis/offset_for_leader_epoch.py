"""OffsetForLeaderEpoch (key 23): where a leader epoch ended, to find out what to truncate (KIP-101, KIP-320).

Version 1 answers with the epoch it found; 2 adds fencing and the throttle time; 3 the replica's id; 4 is flexible.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, int64, string


class OffsetForLeaderPartition(Message):
    """An epoch of one partition."""

    partition: Annotated[int32, V(entity="partition")] = 0
    current_leader_epoch: Annotated[int32, V("2+")] = -1  # -1: do not check
    leader_epoch: int32 = 0


class OffsetForLeaderTopic(Message):
    """Partitions of one topic."""

    topic: Annotated[string, V(entity="topicName")] = ""
    partitions: list[OffsetForLeaderPartition] = []


class OffsetForLeaderEpochRequest(Message):
    """-2 is a debugging consumer, allowed beyond the high watermark; -1 a plain one."""

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="4+")

    replica_id: Annotated[int32, V("3+")] = -2
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Message):
    """Where the epoch, or the largest below it, ended; -1 where that is not known."""

    error_code: Annotated[int16, V(errors="any moved")] = 0
    partition: Annotated[int32, V(entity="partition")] = 0
    leader_epoch: Annotated[int32, V("1+")] = -1
    end_offset: int64 = -1


class OffsetForLeaderTopicResult(Message):
    """Partitions of one topic."""

    topic: Annotated[string, V(entity="topicName")] = ""
    partitions: list[EpochEndOffset] = []


class OffsetForLeaderEpochResponse(Message):
    """Epochs and their ends, partition by partition."""

    API_KEY: ClassVar[int] = 23
    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="4+")

    throttle_time_ms: Annotated[int32, V("2+")] = 0
    topics: list[OffsetForLeaderTopicResult] = []
