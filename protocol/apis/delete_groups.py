"""DeleteGroups (key 42)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, string


class DeleteGroupsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    groups_names: list[string] = []


class DeletableGroupResult(Message):
    """A part of the message."""

    group_id: string = ""
    error_code: int16 = 0
    error_message: Annotated[string | None, V("3+", null="3+")] = None


class DeleteGroupsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    throttle_time_ms: int32 = 0
    results: list[DeletableGroupResult] = []
