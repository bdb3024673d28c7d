"""DeleteRecords (key 21)."""

from __future__ import annotations

from typing import ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import Versions, int16, int32, int64, string


class DeleteRecordsPartition(Message):
    """A part of the message."""

    partition_index: int32 = 0
    offset: int64 = 0


class DeleteRecordsTopic(Message):
    """A part of the message."""

    name: string = ""
    partitions: list[DeleteRecordsPartition] = []


class DeleteRecordsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    topics: list[DeleteRecordsTopic] = []
    timeout_ms: int32 = 0


class DeleteRecordsPartitionResult(Message):
    """A part of the message."""

    partition_index: int32 = 0
    low_watermark: int64 = 0
    error_code: int16 = 0


class DeleteRecordsTopicResult(Message):
    """A part of the message."""

    name: string = ""
    partitions: list[DeleteRecordsPartitionResult] = []


class DeleteRecordsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 21
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    throttle_time_ms: int32 = 0
    topics: list[DeleteRecordsTopicResult] = []
