"""StreamsGroupHeartbeat (key 88): joining, heartbeats, tasks and leaving of a Streams group's member (KIP-1071).

v1: requests for topology descriptions (KIP-1331), recovery lag in 64 bits. Fields unchanged since the last heartbeat
are null.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int8, int16, int32, int64, string, uint16


class KeyValue(Message):
    key: string = ""
    value: string = ""


class TopicInfo(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: int32 = 0
    replication_factor: int16 = 0
    topic_configs: list[KeyValue] = []


class CopartitionGroup(Message):
    source_topics: list[int16] = []
    source_topic_regex: list[int16] = []
    repartition_source_topics: list[int16] = []


class Subtopology(Message):
    subtopology_id: string = ""
    source_topics: Annotated[list[string], V(entity="topicName")] = []
    source_topic_regex: list[string] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_sink_topics: Annotated[list[string], V(entity="topicName")] = []
    repartition_source_topics: list[TopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []


class Topology(Message):
    epoch: int32 = 0
    subtopologies: list[Subtopology] = []


class TaskIds(Message):
    subtopology_id: string = ""
    partitions: list[int32] = []


class Endpoint(Message):
    host: string = ""
    port: uint16 = 0


class TaskOffset(Message):
    subtopology_id: string = ""
    partition: int32 = 0
    offset: int64 = 0


class StreamsGroupHeartbeatRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    member_id: string = ""
    member_epoch: int32 = 0
    endpoint_information_epoch: int32 = 0
    instance_id: Annotated[string | None, V("0+", null="0+")] = None
    rack_id: Annotated[string | None, V("0+", null="0+")] = None
    rebalance_timeout_ms: int32 = -1
    topology: Annotated[Topology | None, V("0+", null="0+")] = None
    active_tasks: Annotated[list[TaskIds] | None, V("0+", null="0+")] = None
    standby_tasks: Annotated[list[TaskIds] | None, V("0+", null="0+")] = None
    warmup_tasks: Annotated[list[TaskIds] | None, V("0+", null="0+")] = None
    process_id: Annotated[string | None, V("0+", null="0+")] = None
    user_endpoint: Annotated[Endpoint | None, V("0+", null="0+")] = None
    client_tags: Annotated[list[KeyValue] | None, V("0+", null="0+")] = None
    task_offsets: Annotated[list[TaskOffset] | None, V("0+", null="0+")] = None
    task_end_offsets: Annotated[list[TaskOffset] | None, V("0+", null="0+")] = None
    shutdown_application: boolean = False


class Status(Message):
    status_code: int8 = 0
    status_detail: string = ""


class TopicPartition(Message):
    topic: Annotated[string, V(entity="topicName")] = ""
    partitions: list[int32] = []


class EndpointToPartitions(Message):
    user_endpoint: Endpoint = field(default_factory=Endpoint)
    active_partitions: list[TopicPartition] = []
    standby_partitions: list[TopicPartition] = []


class StreamsGroupHeartbeatResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[
        int16,
        V(
            errors="any heartbeat UNRELEASED_INSTANCE_ID FENCED_INSTANCE_ID CLUSTER_AUTHORIZATION_FAILED"
            " STREAMS_INVALID_TOPOLOGY STREAMS_INVALID_TOPOLOGY_EPOCH STREAMS_TOPOLOGY_FENCED"
        ),
    ] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    member_id: string = ""
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    acceptable_recovery_lag_legacy: Annotated[int32, V("0")] = 0
    task_offset_interval_ms: int32 = 0
    acceptable_recovery_lag: Annotated[int64, V("1+")] = -1
    status: Annotated[list[Status] | None, V("0+", null="0+")] = []
    active_tasks: Annotated[list[TaskIds] | None, V("0+", null="0+")] = None
    standby_tasks: Annotated[list[TaskIds] | None, V("0+", null="0+")] = None
    warmup_tasks: Annotated[list[TaskIds] | None, V("0+", null="0+")] = None
    topology_description_required: Annotated[boolean, V("1+")] = False
    endpoint_information_epoch: int32 = 0
    partitions_by_user_endpoint: Annotated[list[EndpointToPartitions] | None, V("0+", null="0+")] = None
