"""AlterPartitionReassignments (key 45)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, int16, int32, string


class ReassignablePartition(Message):
    """A part of the message."""

    partition_index: int32 = 0
    replicas: Annotated[list[int32] | None, V("0+", null="0+")] = None


class ReassignableTopic(Message):
    """A part of the message."""

    name: string = ""
    partitions: list[ReassignablePartition] = []


class AlterPartitionReassignmentsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 45
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="0+")

    timeout_ms: int32 = 60000
    allow_replication_factor_change: Annotated[boolean, V("1+")] = True
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(Message):
    """A part of the message."""

    partition_index: int32 = 0
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""


class ReassignableTopicResponse(Message):
    """A part of the message."""

    name: string = ""
    partitions: list[ReassignablePartitionResponse] = []


class AlterPartitionReassignmentsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 45
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="0+")

    throttle_time_ms: int32 = 0
    allow_replication_factor_change: Annotated[boolean, V("1+")] = True
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
    responses: list[ReassignableTopicResponse] = []
