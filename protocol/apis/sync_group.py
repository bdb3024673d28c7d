"""SyncGroup (key 14)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, bytes_, int16, int32, string


class SyncGroupRequestAssignment(Message):
    """A part of the message."""

    member_id: string = ""
    assignment: bytes_ = b""


class SyncGroupRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="4+")

    group_id: string = ""
    generation_id: int32 = 0
    member_id: string = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = None
    protocol_type: Annotated[string | None, V("5+", null="5+")] = None
    protocol_name: Annotated[string | None, V("5+", null="5+")] = None
    assignments: list[SyncGroupRequestAssignment] = []


class SyncGroupResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="4+")

    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: int16 = 0
    protocol_type: Annotated[string | None, V("5+", null="5+")] = None
    protocol_name: Annotated[string | None, V("5+", null="5+")] = None
    assignment: bytes_ = b""
