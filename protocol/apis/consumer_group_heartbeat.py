"""ConsumerGroupHeartbeat (key 68): all that a member of a KIP-848 group does: join, stay, change, be assigned, leave.

Version 1 adds subscriptions by a regular expression that the broker evaluates, and has members make their own ids
(KIP-1082). All versions are flexible. What did not change since the last heartbeat is null, in both directions.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, int16, int32, string, uuid


class TopicPartitions(Message):
    """Partitions of one topic."""

    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: Annotated[list[int32], V(entity="partition")] = []


class ConsumerGroupHeartbeatRequest(Message):
    """A member that joins says all of itself, later only what changed."""

    API_KEY: ClassVar[int] = 68
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="0+")

    group_id: Annotated[string, V(entity="groupId")] = ""
    member_id: string = ""
    member_epoch: int32 = 0  # 0: joins, -1: leaves, -2: a static member goes and will be back
    instance_id: Annotated[string | None, V("0+", null="0+")] = None
    rack_id: Annotated[string | None, V("0+", null="0+")] = None
    rebalance_timeout_ms: int32 = -1  # how long it may take to give partitions up; -1: as before
    subscribed_topic_names: Annotated[list[string] | None, V(null="0+", entity="topicName")] = None
    subscribed_topic_regex: Annotated[string | None, V("1+", null="1+")] = None
    server_assignor: Annotated[string | None, V("0+", null="0+")] = None  # `uniform` or `range`
    topic_partitions: Annotated[list[TopicPartitions] | None, V("0+", null="0+")] = None  # that it has now


class Assignment(Message):
    """What the member shall have from now on."""

    topic_partitions: list[TopicPartitions] = []


class ConsumerGroupHeartbeatResponse(Message):
    """The epoch the member is in now, and what it shall have if that changed."""

    API_KEY: ClassVar[int] = 68
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="0+")

    throttle_time_ms: int32 = 0
    error_code: Annotated[
        int16,
        V(
            errors="any coordinator UNKNOWN_MEMBER_ID FENCED_MEMBER_EPOCH UNSUPPORTED_ASSIGNOR"
            " UNRELEASED_INSTANCE_ID GROUP_MAX_SIZE_REACHED INVALID_REGULAR_EXPRESSION"
            " TOPIC_AUTHORIZATION_FAILED FENCED_INSTANCE_ID GROUP_ID_NOT_FOUND"
        ),
    ] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    member_id: Annotated[string | None, V("0+", null="0+")] = None
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    assignment: Annotated[Assignment | None, V("0+", null="0+")] = None
