"""LeaveGroup (key 13): removes members of a classic group before their session timeout.

v1: throttle time (KIP-124); v3: several members, static ones by instance id (KIP-345); v5: reason (KIP-800).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, string


class MemberIdentity(Message):
    member_id: Annotated[string, V("3+")] = ""  # optional with an instance id
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = None
    reason: Annotated[string | None, V("5+", null="5+")] = None


class LeaveGroupRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    member_id: Annotated[string, V("0-2")] = ""
    members: Annotated[list[MemberIdentity], V("3+")] = []


class MemberResponse(Message):
    member_id: Annotated[string, V("3+", map_key=True)] = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+", map_key=True)] = ""
    error_code: Annotated[int16, V("3+", errors="UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID")] = 0


class LeaveGroupResponse(Message):
    """From version 3, the top-level error is only about the group."""

    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: Annotated[int16, V(errors="any coordinator")] = 0
    members: Annotated[list[MemberResponse], V("3+")] = []
