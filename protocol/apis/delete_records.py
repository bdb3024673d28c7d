"""DeleteRecords (key 21): deletes records before an offset, the new log start offset (KIP-107)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, int64, string


class DeleteRecordsPartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    offset: int64 = 0  # -1: the high watermark


class DeleteRecordsTopic(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[DeleteRecordsPartition] = []


class DeleteRecordsRequest(Message):
    """Sent to the leaders; the response is sent after all replicas have deleted the records."""

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: int32 = 0


class DeleteRecordsPartitionResult(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    low_watermark: Annotated[int64, V(on_error=-1)] = 0  # -1 on errors
    error_code: Annotated[int16, V(errors="any moved OFFSET_OUT_OF_RANGE POLICY_VIOLATION INVALID_TOPIC_EXCEPTION")] = 0


class DeleteRecordsTopicResult(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[DeleteRecordsPartitionResult] = []


class DeleteRecordsResponse(Message):
    throttle_time_ms: int32 = 0
    topics: list[DeleteRecordsTopicResult] = []
