"""ListPartitionReassignments (key 46): the moves of partitions that are under way (KIP-455). Flexible."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, string


class ListPartitionReassignmentsTopics(Message):
    """Partitions of one topic."""

    name: string = ""
    partition_indexes: list[int32] = []


class ListPartitionReassignmentsRequest(Message):
    """Null for all topics."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    timeout_ms: int32 = 60000
    topics: Annotated[list[ListPartitionReassignmentsTopics] | None, V("0+", null="0+")] = None


class OngoingPartitionReassignment(Message):
    """The brokers that have the partition now, those that come and those that go."""

    partition_index: int32 = 0
    replicas: list[int32] = []  # those that come and go among them
    adding_replicas: list[int32] = []
    removing_replicas: list[int32] = []


class OngoingTopicReassignment(Message):
    """Partitions of one topic."""

    name: string = ""
    partitions: list[OngoingPartitionReassignment] = []


class ListPartitionReassignmentsResponse(Message):
    """Only the partitions that move."""

    API_KEY: ClassVar[int] = 46
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+", client_throttles="0+")

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
    topics: list[OngoingTopicReassignment] = []
