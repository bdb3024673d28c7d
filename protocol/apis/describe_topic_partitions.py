"""DescribeTopicPartitions (key 75): topics page by page, with eligible leader replicas (KIP-966)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, int16, int32, string, uuid


class TopicRequest(Message):
    name: Annotated[string, V(entity="topicName")] = ""


class Cursor(Message):
    """The start of a page; topics are ordered by name, partitions by index."""

    topic_name: string = ""
    partition_index: int32 = 0


class DescribeTopicPartitionsRequest(Message):
    """No topics: all topics. No cursor: the first page."""

    topics: Annotated[list[TopicRequest], V(selects_all="empty")] = []
    response_partition_limit: int32 = 2000
    cursor: Annotated[Cursor | None, V("0+", null="0+")] = None


class DescribeTopicPartitionsResponsePartition(Message):
    error_code: Annotated[int16, V(errors="")] = 0
    partition_index: Annotated[int32, V(entity="partition")] = 0
    leader_id: Annotated[int32, V(on_error=-1)] = 0
    leader_epoch: int32 = -1
    replica_nodes: Annotated[list[int32], V(on_error="kept")] = []
    isr_nodes: Annotated[list[int32], V(on_error="kept")] = []
    eligible_leader_replicas: Annotated[list[int32] | None, V("0+", null="0+")] = None  # complete, though not in sync
    last_known_elr: Annotated[list[int32] | None, V("0+", null="0+")] = None  # may lack records
    offline_replicas: list[int32] = []


class DescribeTopicPartitionsResponseTopic(Message):
    error_code: Annotated[
        int16, V(errors="any UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED")
    ] = 0
    name: Annotated[string | None, V(null="0+", entity="topicName")] = ""
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    is_internal: boolean = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: int32 = -0x8000_0000


class DescribeTopicPartitionsResponse(Message):
    """The last page has no cursor."""

    throttle_time_ms: int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Annotated[Cursor | None, V("0+", null="0+")] = None
