"""ShareGroupDescribe (key 77): state, epochs and members of share groups (KIP-932).

v0: early access of Kafka 4.0.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, int16, int32, string, uuid


class ShareGroupDescribeRequest(Message):
    group_ids: Annotated[list[string], V(entity="groupId")] = []
    include_authorized_operations: boolean = False


class TopicPartitions(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    topic_name: Annotated[string, V(entity="topicName")] = ""
    partitions: Annotated[list[int32], V(entity="partition")] = []


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = []


class Member(Message):
    member_id: string = ""
    rack_id: Annotated[string | None, V("0+", null="0+")] = None
    member_epoch: int32 = 0
    client_id: string = ""
    client_host: string = ""
    subscribed_topic_names: Annotated[list[string], V(entity="topicName")] = []
    assignment: Assignment = field(default_factory=Assignment)


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


class ShareGroupDescribeResponse(Message):
    throttle_time_ms: int32 = 0
    groups: Annotated[list[DescribedGroup], V(answers="group_ids")] = []
