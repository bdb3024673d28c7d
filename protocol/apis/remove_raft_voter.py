"""RemoveRaftVoter (key 81): removes a controller from the voters of the metadata log (KIP-853)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int16, int32, string, uuid


class RemoveRaftVoterRequest(Message):
    cluster_id: Annotated[string | None, V("0+", null="0+")] = ""
    voter_id: int32 = 0
    voter_directory_id: uuid = ZERO_UUID


class RemoveRaftVoterResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any controller VOTER_NOT_FOUND INCONSISTENT_CLUSTER_ID")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
