"""DeleteTopics (key 20): deletes topics.

v1: throttle time; v5: error messages, THROTTLING_QUOTA_EXCEEDED (KIP-599); v6: topic ids (KIP-516).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int16, int32, string, uuid


class DeleteTopicState(Message):
    """A topic by name or, if that is null, by id."""

    name: Annotated[string | None, V("6+", null="6+", entity="topicName")] = None
    topic_id: Annotated[uuid, V("6+", entity="topicId")] = ZERO_UUID


class DeleteTopicsRequest(Message):
    topics: Annotated[list[DeleteTopicState], V("6+")] = []
    topic_names: Annotated[list[string], V("0-5", entity="topicName")] = []
    timeout_ms: int32 = 0


class DeletableTopicResult(Message):
    name: Annotated[string | None, V(null="6+", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("6+", entity="topicId")] = ZERO_UUID
    error_code: Annotated[
        int16, V(errors="any topic TOPIC_DELETION_DISABLED UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID")
    ] = 0
    error_message: Annotated[string | None, V("5+", null="5+")] = None


class DeleteTopicsResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    responses: Annotated[list[DeletableTopicResult], V(answers="topics topic_names")] = []
