"""ElectLeaders (key 43): elects preferred leaders (KIP-183), or any live replicas (KIP-460).

v0: only preferred leaders; v1: type of election, top-level error.
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int8, int16, int32, string


class TopicPartitions(Message):
    topic: Annotated[string, V(entity="topicName")] = ""
    partitions: Annotated[list[int32], V(entity="partition")] = []


class ElectLeadersRequest(Message):
    """Null: all partitions."""

    election_type: Annotated[int8, V("1+")] = 0  # 0: preferred leader; 1: any live replica if none is in sync
    topic_partitions: Annotated[list[TopicPartitions] | None, V(null="0+", selects_all="null")] = []
    timeout_ms: int32 = 60000


class PartitionResult(Message):
    partition_id: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[
        int16,
        V(
            errors="any ELECTION_NOT_NEEDED PREFERRED_LEADER_NOT_AVAILABLE ELIGIBLE_LEADERS_NOT_AVAILABLE"
            " UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION LEADER_NOT_AVAILABLE"
        ),
    ] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""


class ReplicaElectionResult(Message):
    topic: Annotated[string, V(entity="topicName")] = ""
    partition_result: Annotated[list[PartitionResult], V(answers="partitions")] = []


class ElectLeadersResponse(Message):
    """For a request of all partitions, those without an election are omitted."""

    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V("1+", errors="controller")] = 0
    replica_election_results: Annotated[list[ReplicaElectionResult], V(answers="topic_partitions")] = []
