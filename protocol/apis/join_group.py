"""JoinGroup (key 11)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, bytes_, int16, int32, string


class JoinGroupRequestProtocol(Message):
    """A part of the message."""

    name: string = ""
    metadata: bytes_ = b""


class JoinGroupRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[Versions] = Versions("0-9", flexible="6+")

    group_id: string = ""
    session_timeout_ms: int32 = 0
    rebalance_timeout_ms: Annotated[int32, V("1+")] = -1
    member_id: string = ""
    group_instance_id: Annotated[string | None, V("5+", null="5+")] = None
    protocol_type: string = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[string | None, V("8+", null="8+")] = None


class JoinGroupResponseMember(Message):
    """A part of the message."""

    member_id: string = ""
    group_instance_id: Annotated[string | None, V("5+", null="5+")] = None
    metadata: bytes_ = b""


class JoinGroupResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[Versions] = Versions("0-9", flexible="6+")

    throttle_time_ms: Annotated[int32, V("2+")] = 0
    error_code: int16 = 0
    generation_id: int32 = -1
    protocol_type: Annotated[string | None, V("7+", null="7+")] = None
    protocol_name: Annotated[string | None, V("0+", null="7+")] = ""
    leader: string = ""
    skip_assignment: Annotated[boolean, V("9+")] = False
    member_id: string = ""
    members: list[JoinGroupResponseMember] = []
