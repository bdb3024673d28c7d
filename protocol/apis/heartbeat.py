"""Heartbeat (key 12)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, string


class HeartbeatRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="4+")

    group_id: string = ""
    generation_id: int32 = 0
    member_id: string = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = None


class HeartbeatResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="4+")

    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: int16 = 0
