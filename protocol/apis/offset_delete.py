"""OffsetDelete (key 47): deletes a group's committed offsets for topics without a subscription (KIP-496)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, string


class OffsetDeleteRequestPartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0


class OffsetDeleteRequestTopic(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[OffsetDeleteRequestPartition] = []


class OffsetDeleteRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponsePartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[
        int16, V(errors="any GROUP_SUBSCRIBED_TO_TOPIC TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_OR_PARTITION")
    ] = 0


class OffsetDeleteResponseTopic(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Message):
    """Unlike elsewhere, the throttle time follows the error."""

    error_code: Annotated[int16, V(errors="coordinator GROUP_ID_NOT_FOUND NON_EMPTY_GROUP")] = 0
    throttle_time_ms: int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
