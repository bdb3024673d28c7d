"""SyncGroup (key 14): the leader of a classic group sends the assignment; each member receives its part.

v1: throttle time (KIP-124); v3: static members (KIP-345); v5: the group's protocol, for consistency checks (KIP-559).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, bytes_, int16, int32, string


class SyncGroupRequestAssignment(Message):
    member_id: string = ""
    assignment: bytes_ = b""


class SyncGroupRequest(Message):
    """Only the leader sends assignments."""

    group_id: Annotated[string, V(entity="groupId")] = ""
    generation_id: int32 = 0
    member_id: string = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = None
    protocol_type: Annotated[string | None, V("5+", null="5+")] = None
    protocol_name: Annotated[string | None, V("5+", null="5+")] = None
    assignments: list[SyncGroupRequestAssignment] = []


class SyncGroupResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: Annotated[int16, V(errors="any coordinator member INCONSISTENT_GROUP_PROTOCOL")] = 0
    protocol_type: Annotated[string | None, V("5+", null="5+")] = None
    protocol_name: Annotated[string | None, V("5+", null="5+")] = None
    assignment: bytes_ = b""
