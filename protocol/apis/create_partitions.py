"""CreatePartitions (key 37): adds partitions to topics (KIP-195).

v3: THROTTLING_QUOTA_EXCEEDED (KIP-599).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int16, int32, string


class CreatePartitionsAssignment(Message):
    broker_ids: list[int32] = []


class CreatePartitionsTopic(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    count: int32 = 0
    assignments: Annotated[list[CreatePartitionsAssignment] | None, V("0+", null="0+")] = []


class CreatePartitionsRequest(Message):
    """Each topic succeeds or fails independently."""

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: int32 = 0
    validate_only: boolean = False


class CreatePartitionsTopicResult(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    error_code: Annotated[
        int16,
        V(
            errors="any topic UNKNOWN_TOPIC_OR_PARTITION INVALID_PARTITIONS INVALID_REPLICA_ASSIGNMENT"
            " REASSIGNMENT_IN_PROGRESS"
        ),
    ] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None


class CreatePartitionsResponse(Message):
    throttle_time_ms: int32 = 0
    results: Annotated[list[CreatePartitionsTopicResult], V(answers="topics")] = []
