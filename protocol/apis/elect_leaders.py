"""ElectLeaders (key 43)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int8, int16, int32, string


class TopicPartitions(Message):
    """A part of the message."""

    topic: string = ""
    partitions: list[int32] = []


class ElectLeadersRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    election_type: Annotated[int8, V("1+")] = 0
    topic_partitions: Annotated[list[TopicPartitions] | None, V("0+", null="0+")] = []
    timeout_ms: int32 = 60000


class PartitionResult(Message):
    """A part of the message."""

    partition_id: int32 = 0
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""


class ReplicaElectionResult(Message):
    """A part of the message."""

    topic: string = ""
    partition_result: list[PartitionResult] = []


class ElectLeadersResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 43
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V("1+")] = 0
    replica_election_results: list[ReplicaElectionResult] = []
