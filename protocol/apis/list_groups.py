"""ListGroups (key 16)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, string


class ListGroupsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="3+")

    states_filter: Annotated[list[string], V("4+")] = []
    types_filter: Annotated[list[string], V("5+")] = []


class ListedGroup(Message):
    """A part of the message."""

    group_id: string = ""
    protocol_type: string = ""
    group_state: Annotated[string, V("4+")] = ""
    group_type: Annotated[string, V("5+")] = ""


class ListGroupsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="3+")

    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: int16 = 0
    groups: list[ListedGroup] = []
