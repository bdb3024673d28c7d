"""DescribeTopicPartitions (key 75)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, boolean, int16, int32, string, uuid


class TopicRequest(Message):
    """A part of the message."""

    name: string = ""


class Cursor(Message):
    """A part of the message."""

    topic_name: string = ""
    partition_index: int32 = 0


class DescribeTopicPartitionsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 75
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    topics: list[TopicRequest] = []
    response_partition_limit: int32 = 2000
    cursor: Annotated[Cursor | None, V("0+", null="0+")] = None


class DescribeTopicPartitionsResponsePartition(Message):
    """A part of the message."""

    error_code: int16 = 0
    partition_index: int32 = 0
    leader_id: int32 = 0
    leader_epoch: int32 = -1
    replica_nodes: list[int32] = []
    isr_nodes: list[int32] = []
    eligible_leader_replicas: Annotated[list[int32] | None, V("0+", null="0+")] = None
    last_known_elr: Annotated[list[int32] | None, V("0+", null="0+")] = None
    offline_replicas: list[int32] = []


class DescribeTopicPartitionsResponseTopic(Message):
    """A part of the message."""

    error_code: int16 = 0
    name: Annotated[string | None, V("0+", null="0+")] = ""
    topic_id: uuid = ZERO_UUID
    is_internal: boolean = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: int32 = -0x8000_0000


class DescribeTopicPartitionsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 75
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    throttle_time_ms: int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Annotated[Cursor | None, V("0+", null="0+")] = None
