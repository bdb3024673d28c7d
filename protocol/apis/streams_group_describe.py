"""StreamsGroupDescribe (key 89): state, topology and members of Streams groups (KIP-1071).

v1: topology description (KIP-1331), assignor (KIP-1357).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int8, int16, int32, string

from .streams_group_heartbeat import Endpoint, KeyValue, TaskIds, TaskOffset, TopicInfo
from .streams_group_topology_description_update import TopologyDescription


class StreamsGroupDescribeRequest(Message):
    group_ids: Annotated[list[string], V(entity="groupId")] = []
    include_authorized_operations: boolean = False
    include_topology_description: Annotated[boolean, V("1+")] = False


class Subtopology(Message):
    subtopology_id: string = ""
    source_topics: Annotated[list[string], V(entity="topicName")] = []
    repartition_sink_topics: Annotated[list[string], V(entity="topicName")] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_source_topics: list[TopicInfo] = []


class Topology(Message):
    epoch: int32 = 0
    subtopologies: Annotated[list[Subtopology] | None, V("0+", null="0+")] = None


class Assignment(Message):
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []


class Member(Message):
    member_id: string = ""
    member_epoch: int32 = 0
    instance_id: Annotated[string | None, V("0+", null="0+")] = None
    rack_id: Annotated[string | None, V("0+", null="0+")] = None
    client_id: string = ""
    client_host: string = ""
    topology_epoch: int32 = 0
    process_id: string = ""
    user_endpoint: Annotated[Endpoint | None, V("0+", null="0+")] = None
    client_tags: list[KeyValue] = []
    task_offsets: list[TaskOffset] = []
    task_end_offsets: list[TaskOffset] = []
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    is_classic: boolean = False


class DescribedGroup(Message):
    error_code: Annotated[int16, V(errors="any coordinator GROUP_ID_NOT_FOUND TOPIC_AUTHORIZATION_FAILED")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    group_id: Annotated[string, V(entity="groupId")] = ""
    group_state: string = ""
    group_epoch: int32 = 0
    assignment_epoch: int32 = 0
    topology: Annotated[Topology | None, V("0+", null="0+")] = None
    members: list[Member] = []
    authorized_operations: int32 = -0x8000_0000
    topology_description: Annotated[TopologyDescription | None, V("1+", null="1+")] = None
    topology_description_status: Annotated[int8, V("1+")] = 0
    assignor_name: Annotated[string | None, V("1+", null="1+")] = None


class StreamsGroupDescribeResponse(Message):
    throttle_time_ms: int32 = 0
    groups: Annotated[list[DescribedGroup], V(answers="group_ids")] = []
