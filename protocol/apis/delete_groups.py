"""DeleteGroups (key 42): deletes groups without members, and their offsets (KIP-229).

v3: error messages (KIP-1331).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, string


class DeleteGroupsRequest(Message):
    groups_names: Annotated[list[string], V(entity="groupId")] = []


class DeletableGroupResult(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    error_code: Annotated[int16, V(errors="any coordinator NON_EMPTY_GROUP GROUP_ID_NOT_FOUND")] = 0
    error_message: Annotated[string | None, V("3+", null="3+")] = None


class DeleteGroupsResponse(Message):
    throttle_time_ms: int32 = 0
    results: Annotated[list[DeletableGroupResult], V(answers="groups_names")] = []
