"""ListPartitionReassignments (key 46): current moves of partitions (KIP-455)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, string


class ListPartitionReassignmentsTopics(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partition_indexes: Annotated[list[int32], V(entity="partition")] = []


class ListPartitionReassignmentsRequest(Message):
    """Null: all topics."""

    timeout_ms: int32 = 60000
    topics: Annotated[list[ListPartitionReassignmentsTopics] | None, V(null="0+", selects_all="null")] = None


class OngoingPartitionReassignment(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    replicas: list[int32] = []
    adding_replicas: list[int32] = []
    removing_replicas: list[int32] = []


class OngoingTopicReassignment(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: Annotated[list[OngoingPartitionReassignment], V(answers="partition_indexes")] = []


class ListPartitionReassignmentsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any controller")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    topics: list[OngoingTopicReassignment] = []
