"""LeaveGroup (key 13)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, string


class MemberIdentity(Message):
    """A part of the message."""

    member_id: Annotated[string, V("3+")] = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = None
    reason: Annotated[string | None, V("5+", null="5+")] = None


class LeaveGroupRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="4+")

    group_id: string = ""
    member_id: Annotated[string, V("0-2")] = ""
    members: Annotated[list[MemberIdentity], V("3+")] = []


class MemberResponse(Message):
    """A part of the message."""

    member_id: Annotated[string, V("3+")] = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = ""
    error_code: Annotated[int16, V("3+")] = 0


class LeaveGroupResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="4+")

    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: int16 = 0
    members: Annotated[list[MemberResponse], V("3+")] = []
