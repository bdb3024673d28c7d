"""ConsumerGroupHeartbeat (key 68)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, int16, int32, string, uuid


class TopicPartitions(Message):
    """A part of the message."""

    topic_id: uuid = ZERO_UUID
    partitions: list[int32] = []


class ConsumerGroupHeartbeatRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 68
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="0+")

    group_id: string = ""
    member_id: string = ""
    member_epoch: int32 = 0
    instance_id: Annotated[string | None, V("0+", null="0+")] = None
    rack_id: Annotated[string | None, V("0+", null="0+")] = None
    rebalance_timeout_ms: int32 = -1
    subscribed_topic_names: Annotated[list[string] | None, V("0+", null="0+")] = None
    subscribed_topic_regex: Annotated[string | None, V("1+", null="1+")] = None
    server_assignor: Annotated[string | None, V("0+", null="0+")] = None
    topic_partitions: Annotated[list[TopicPartitions] | None, V("0+", null="0+")] = None


class Assignment(Message):
    """A part of the message."""

    topic_partitions: list[TopicPartitions] = []


class ConsumerGroupHeartbeatResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 68
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="0+")

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    member_id: Annotated[string | None, V("0+", null="0+")] = None
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    assignment: Annotated[Assignment | None, V("0+", null="0+")] = None
