"""AlterReplicaLogDirs (key 34): moves replicas between log directories of one broker (KIP-113)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, string


class AlterReplicaLogDirTopic(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: Annotated[list[int32], V(entity="partition")] = []


class AlterReplicaLogDir(Message):
    path: string = ""
    topics: list[AlterReplicaLogDirTopic] = []


class AlterReplicaLogDirsRequest(Message):
    """Sent to the broker with the replicas; the response is sent before they move."""

    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[
        int16,
        V(
            errors="any LOG_DIR_NOT_FOUND KAFKA_STORAGE_ERROR REPLICA_NOT_AVAILABLE CLUSTER_AUTHORIZATION_FAILED"
            " UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION"
        ),
    ] = 0


class AlterReplicaLogDirTopicResult(Message):
    topic_name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


class AlterReplicaLogDirsResponse(Message):
    throttle_time_ms: int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
