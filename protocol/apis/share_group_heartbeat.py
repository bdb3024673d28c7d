"""ShareGroupHeartbeat (key 76): joining, heartbeats, assignment and leaving of a share group's member (KIP-932).

v0: early access of Kafka 4.0. The member generates its id. Fields unchanged since the last heartbeat are null.
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, string

from .consumer_group_heartbeat import Assignment


class ShareGroupHeartbeatRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    member_id: string = ""
    member_epoch: int32 = 0  # 0: join, -1: leave
    rack_id: Annotated[string | None, V("0+", null="0+")] = None
    subscribed_topic_names: Annotated[list[string] | None, V("0+", null="0+", entity="topicName")] = None


class ShareGroupHeartbeatResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any heartbeat")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    member_id: Annotated[string | None, V("0+", null="0+")] = None
    member_epoch: int32 = 0
    heartbeat_interval_ms: int32 = 0
    assignment: Annotated[Assignment | None, V("0+", null="0+")] = None
