"""AddRaftVoter (key 80): adds a controller to the voters of the metadata log (KIP-853).

v1: response before the change is committed (KIP-1186).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, int16, int32, string, uint16, uuid


class Listener(Message):
    name: Annotated[string, V(map_key=True)] = ""
    host: string = ""
    port: uint16 = 0


class AddRaftVoterRequest(Message):
    cluster_id: Annotated[string | None, V("0+", null="0+")] = ""
    timeout_ms: int32 = 0
    voter_id: int32 = 0
    voter_directory_id: uuid = ZERO_UUID
    listeners: list[Listener] = []
    ack_when_committed: Annotated[boolean, V("1+")] = True


class AddRaftVoterResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[
        int16, V(errors="any controller DUPLICATE_VOTER INCONSISTENT_CLUSTER_ID INVALID_VOTER_KEY")
    ] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
