"""ConsumerGroupDescribe (key 69): state, epochs and members of KIP-848 groups.

v1: the members' type (KIP-1099).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, int8, int16, int32, string, uuid


class ConsumerGroupDescribeRequest(Message):
    group_ids: Annotated[list[string], V(entity="groupId")] = []
    include_authorized_operations: boolean = False


class TopicPartitions(Message):
    topic_id: uuid = ZERO_UUID
    topic_name: string = ""
    partitions: list[int32] = []


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = []


class Member(Message):
    member_id: string = ""
    instance_id: Annotated[string | None, V("0+", null="0+")] = None
    rack_id: Annotated[string | None, V("0+", null="0+")] = None
    member_epoch: int32 = 0
    client_id: string = ""
    client_host: string = ""
    subscribed_topic_names: list[string] = []
    subscribed_topic_regex: Annotated[string | None, V("0+", null="0+")] = None
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    member_type: Annotated[int8, V("1+")] = -1  # -1: unknown, 0: classic, 1: consumer


class DescribedGroup(Message):
    error_code: Annotated[int16, V(errors="any coordinator GROUP_ID_NOT_FOUND TOPIC_AUTHORIZATION_FAILED")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    group_id: Annotated[string, V(entity="groupId")] = ""
    group_state: string = ""
    group_epoch: int32 = 0
    assignment_epoch: int32 = 0
    assignor_name: string = ""
    members: list[Member] = []
    authorized_operations: int32 = -0x8000_0000


class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: int32 = 0
    groups: Annotated[list[DescribedGroup], V(answers="group_ids")] = []
