"""AlterPartitionReassignments (key 45): moves partitions to other brokers, or cancels a move (KIP-455).

v1: may forbid changes of the replication factor (KIP-860).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int16, int32, string


class ReassignablePartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    replicas: Annotated[list[int32] | None, V("0+", null="0+")] = None


class ReassignableTopic(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[ReassignablePartition] = []


class AlterPartitionReassignmentsRequest(Message):
    timeout_ms: int32 = 60000
    allow_replication_factor_change: Annotated[boolean, V("1+")] = True
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[
        int16,
        V(
            errors="any NO_REASSIGNMENT_IN_PROGRESS INVALID_REPLICA_ASSIGNMENT INVALID_REPLICATION_FACTOR"
            " UNKNOWN_TOPIC_OR_PARTITION"
        ),
    ] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""


class ReassignableTopicResponse(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[ReassignablePartitionResponse] = []


class AlterPartitionReassignmentsResponse(Message):
    throttle_time_ms: int32 = 0
    allow_replication_factor_change: Annotated[boolean, V("1+")] = True
    error_code: Annotated[int16, V(errors="controller")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    responses: Annotated[list[ReassignableTopicResponse], V(answers="topics")] = []
