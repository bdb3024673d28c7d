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

    groups_names: Annotated[list[string], V(entity="groupId")] = []


class DeletableGroupResult(Message):
    """What became of one group."""

    group_id: Annotated[string, V(entity="groupId")] = ""
    error_code: Annotated[int16, V(errors="any coordinator NON_EMPTY_GROUP GROUP_ID_NOT_FOUND")] = 0
    error_message: Annotated[string | None, V("3+", null="3+")] = None


class DeleteGroupsResponse(Message):
    """One result a group."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+", client_throttles="1+")

    throttle_time_ms: int32 = 0
    results: Annotated[list[DeletableGroupResult], V(answers="groups_names")] = []
