"""DescribeProducers (key 61)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, int64, string


class TopicRequest(Message):
    """A part of the message."""

    name: string = ""
    partition_indexes: list[int32] = []


class DescribeProducersRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    topics: list[TopicRequest] = []


class ProducerState(Message):
    """A part of the message."""

    producer_id: int64 = 0
    producer_epoch: int32 = 0
    last_sequence: int32 = -1
    last_timestamp: int64 = -1
    coordinator_epoch: int32 = 0
    current_txn_start_offset: int64 = -1


class PartitionResponse(Message):
    """A part of the message."""

    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    active_producers: list[ProducerState] = []


class TopicResponse(Message):
    """A part of the message."""

    name: string = ""
    partitions: list[PartitionResponse] = []


class DescribeProducersResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 61
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    throttle_time_ms: int32 = 0
    topics: list[TopicResponse] = []
