"""ListPartitionReassignments (key 46): the moves of partitions that are under way (KIP-455). Flexible."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, string


class ListPartitionReassignmentsTopics(Message):
    """Partitions of one topic."""

    name: Annotated[string, V(entity="topicName")] = ""
    partition_indexes: Annotated[list[int32], V(entity="partition")] = []


class ListPartitionReassignmentsRequest(Message):
    """Null for all topics."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    timeout_ms: int32 = 60000
    topics: Annotated[list[ListPartitionReassignmentsTopics] | None, V(null="0+", selects_all="null")] = None


class OngoingPartitionReassignment(Message):
    """The brokers that have the partition now, those that come and those that go."""

    partition_index: Annotated[int32, V(entity="partition")] = 0
    replicas: list[int32] = []  # those that come and go among them
    adding_replicas: list[int32] = []
    removing_replicas: list[int32] = []


class OngoingTopicReassignment(Message):
    """Partitions of one topic."""

    name: Annotated[string, V(entity="topicName")] = ""
    partitions: Annotated[list[OngoingPartitionReassignment], V(answers="partition_indexes")] = []


class ListPartitionReassignmentsResponse(Message):
    """Only the partitions that move."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+", client_throttles="0+")

    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any controller")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    topics: list[OngoingTopicReassignment] = []
