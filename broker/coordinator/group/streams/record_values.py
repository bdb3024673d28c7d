"""The values of Streams groups' records in __consumer_offsets, as Kafka 4.4 writes them."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int8, int16, int32, int64, string, uint16


class LastAssignmentConfig(Message):
    key: string = ""
    value: string = ""


class StreamsGroupMetadataValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    epoch: int32 = 0
    metadata_hash: int64 = 0
    validated_topology_epoch: Annotated[int32, V("0+", tag=0)] = -1
    last_assignment_configs: Annotated[list[LastAssignmentConfig] | None, V("0+", null="0+", tag=1)] = None
    stored_description_topology_epoch: Annotated[int32, V("0+", tag=2)] = -1
    failed_description_topology_epoch: Annotated[int32, V("0+", tag=3)] = -1


class Endpoint(Message):
    host: string = ""
    port: uint16 = 0


class KeyValue(Message):
    key: string = ""
    value: string = ""


class StreamsGroupMemberMetadataValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    instance_id: Annotated[string | None, V("0+", null="0+")] = ""
    rack_id: Annotated[string | None, V("0+", null="0+")] = ""
    client_id: string = ""
    client_host: string = ""
    rebalance_timeout_ms: int32 = -1
    topology_epoch: int32 = 0
    process_id: string = ""
    user_endpoint: Annotated[Endpoint | None, V("0+", null="0+")] = None
    client_tags: list[KeyValue] = []


class StreamsGroupTargetAssignmentMetadataValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    assignment_epoch: int32 = 0
    assignment_timestamp: Annotated[int64, V("0+", tag=0)] = 0


class TaskIds(Message):
    subtopology_id: string = ""
    partitions: list[int32] = []


class StreamsGroupTargetAssignmentMemberValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []


class TaskIdsWithEpochs(Message):
    subtopology_id: string = ""
    partitions: list[int32] = []
    assignment_epochs: Annotated[list[int32] | None, V("0+", null="0+", tag=0)] = None


class StreamsGroupCurrentMemberAssignmentValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    member_epoch: int32 = 0
    previous_member_epoch: int32 = 0
    state: int8 = 0
    active_tasks: list[TaskIdsWithEpochs] = []
    standby_tasks: list[TaskIdsWithEpochs] = []
    warmup_tasks: list[TaskIdsWithEpochs] = []
    active_tasks_pending_revocation: list[TaskIdsWithEpochs] = []
    standby_tasks_pending_revocation: list[TaskIdsWithEpochs] = []
    warmup_tasks_pending_revocation: list[TaskIdsWithEpochs] = []


class TopicConfig(Message):
    key: string = ""
    value: string = ""


class TopicInfo(Message):
    name: string = ""
    partitions: int32 = 0
    replication_factor: int16 = 0
    topic_configs: list[TopicConfig] = []


class CopartitionGroup(Message):
    source_topics: list[int16] = []
    source_topic_regex: list[int16] = []
    repartition_source_topics: list[int16] = []


class Subtopology(Message):
    subtopology_id: string = ""
    source_topics: list[string] = []
    source_topic_regex: list[string] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_sink_topics: list[string] = []
    repartition_source_topics: list[TopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []


class StreamsGroupTopologyValue(Message):
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    epoch: int32 = 0
    subtopologies: list[Subtopology] = []
