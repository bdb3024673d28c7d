"""Heartbeat (key 12): keeps a classic group's member alive; the response reports a rebalance.

v1: throttle time (KIP-124); v3: static members (KIP-345).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, string


class HeartbeatRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    generation_id: int32 = 0
    member_id: string = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = None


class HeartbeatResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: Annotated[int16, V(errors="any coordinator member")] = 0
