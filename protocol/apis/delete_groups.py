"""DeleteGroups (key 42): groups without members are forgotten, with their offsets (KIP-229).

Version 1 changes how it is throttled (KIP-219); 2 is flexible; 3 adds error messages (KIP-1331).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, string


class DeleteGroupsRequest(Message):
    """Groups, which the asked broker must coordinate."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    groups_names: list[string] = []


class DeletableGroupResult(Message):
    """What became of one group."""

    group_id: string = ""
    error_code: int16 = 0
    error_message: Annotated[string | None, V("3+", null="3+")] = None


class DeleteGroupsResponse(Message):
    """One result a group."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+", client_throttles="1+")

    throttle_time_ms: int32 = 0
    results: list[DeletableGroupResult] = []
