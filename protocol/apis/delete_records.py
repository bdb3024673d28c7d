"""DeleteRecords (key 21): records before an offset are given up, which moves the log's start (KIP-107).

Version 1 changes how it is throttled (KIP-219); 2 is flexible.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, int64, string


class DeleteRecordsPartition(Message):
    """Where the log of one partition shall start."""

    partition_index: Annotated[int32, V(entity="partition")] = 0
    offset: int64 = 0  # -1: the high watermark


class DeleteRecordsTopic(Message):
    """Partitions of one topic."""

    name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[DeleteRecordsPartition] = []


class DeleteRecordsRequest(Message):
    """Goes to the partitions' leaders; answered when all replicas have done it."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: int32 = 0


class DeleteRecordsPartitionResult(Message):
    """Where the log of one partition starts now, on all of its replicas."""

    partition_index: Annotated[int32, V(entity="partition")] = 0
    low_watermark: Annotated[int64, V(on_error=-1)] = 0  # -1 where there is an error
    error_code: Annotated[int16, V(errors="any moved OFFSET_OUT_OF_RANGE POLICY_VIOLATION INVALID_TOPIC_EXCEPTION")] = 0


class DeleteRecordsTopicResult(Message):
    """Partitions of one topic."""

    name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[DeleteRecordsPartitionResult] = []


class DeleteRecordsResponse(Message):
    """Results, partition by partition."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+", client_throttles="1+")

    throttle_time_ms: int32 = 0
    topics: list[DeleteRecordsTopicResult] = []
