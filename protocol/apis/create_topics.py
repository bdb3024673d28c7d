"""CreateTopics (key 19): new topics, with partitions and replicas counted or assigned.

Version 1 adds validation without creating, and error messages; 2 the throttle time; 4 defaults for the counts
(KIP-464); 5 is flexible and answers with the topic's configuration (KIP-525); 6 may answer THROTTLING_QUOTA_EXCEEDED
(KIP-599); 7 answers with the topic's id (KIP-516).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, boolean, int8, int16, int32, string, uuid


class CreatableReplicaAssignment(Message):
    """The brokers of one partition, the preferred leader first."""

    partition_index: int32 = 0
    broker_ids: list[int32] = []


class CreatableTopicConfig(Message):
    """A setting of the new topic."""

    name: string = ""
    value: Annotated[string | None, V("0+", null="0+")] = ""


class CreatableTopic(Message):
    """A topic to create, by counts or by assignments."""

    name: Annotated[string, V(entity="topicName")] = ""
    num_partitions: int32 = 0  # -1: as assigned, or the default
    replication_factor: int16 = 0  # -1: as assigned, or the default
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


class CreateTopicsRequest(Message):
    """Each topic succeeds or fails on its own."""

    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[Versions] = Versions("0-7", flexible="5+")

    topics: list[CreatableTopic] = []
    timeout_ms: int32 = 60000
    validate_only: Annotated[boolean, V("1+")] = False


class CreatableTopicConfigs(Message):
    """A setting the topic has now."""

    name: Annotated[string, V("5+")] = ""
    value: Annotated[string | None, V("5+", null="5+")] = ""
    read_only: Annotated[boolean, V("5+")] = False
    config_source: Annotated[int8, V("5+")] = -1  # as in DescribeConfigs
    is_sensitive: Annotated[boolean, V("5+")] = False


class CreatableTopicResult(Message):
    """What became of one topic."""

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
    topic_config_error_code: Annotated[int16, V("5+", tag=0)] = 0  # why `configs` is null
    num_partitions: Annotated[int32, V("5+")] = -1
    replication_factor: Annotated[int16, V("5+")] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, V("5+", null="5+")] = []


class CreateTopicsResponse(Message):
    """One result a topic."""

    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[Versions] = Versions("0-7", flexible="5+", client_throttles="3+")

    throttle_time_ms: Annotated[int32, V("2+")] = 0
    topics: list[CreatableTopicResult] = []
