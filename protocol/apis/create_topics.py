"""CreateTopics (key 19): creates topics by number of partitions and replicas, or by assignment.

v1: validation only, error messages; v2: throttle time; v4: default counts (KIP-464); v5: returns the topic's configs
(KIP-525); v6: THROTTLING_QUOTA_EXCEEDED (KIP-599); v7: returns the topic id (KIP-516).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, int8, int16, int32, string, uuid


class CreatableReplicaAssignment(Message):
    partition_index: int32 = 0
    broker_ids: list[int32] = []


class CreatableTopicConfig(Message):
    name: string = ""
    value: Annotated[string | None, V("0+", null="0+")] = ""


class CreatableTopic(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    num_partitions: int32 = 0  # -1: by assignment, or the default
    replication_factor: int16 = 0  # -1: by assignment, or the default
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


class CreateTopicsRequest(Message):
    topics: list[CreatableTopic] = []
    timeout_ms: int32 = 60000
    validate_only: Annotated[boolean, V("1+")] = False


class CreatableTopicConfigs(Message):
    name: Annotated[string, V("5+")] = ""
    value: Annotated[string | None, V("5+", null="5+")] = ""
    read_only: Annotated[boolean, V("5+")] = False
    config_source: Annotated[int8, V("5+")] = -1
    is_sensitive: Annotated[boolean, V("5+")] = False


class CreatableTopicResult(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    topic_id: Annotated[uuid, V("7+", entity="topicId")] = ZERO_UUID
    error_code: Annotated[
        int16,
        V(
            errors="any topic TOPIC_ALREADY_EXISTS INVALID_PARTITIONS INVALID_REPLICATION_FACTOR INVALID_CONFIG"
            " INVALID_REPLICA_ASSIGNMENT UNSUPPORTED_FOR_MESSAGE_FORMAT"
        ),
    ] = 0
    error_message: Annotated[string | None, V("1+", null="0+", on_error=None)] = ""
    topic_config_error_code: Annotated[int16, V("5+", tag=0)] = 0  # the reason for null `configs`
    num_partitions: Annotated[int32, V("5+")] = -1
    replication_factor: Annotated[int16, V("5+")] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, V("5+", null="5+")] = []


class CreateTopicsResponse(Message):
    throttle_time_ms: Annotated[int32, V("2+")] = 0
    topics: list[CreatableTopicResult] = []
