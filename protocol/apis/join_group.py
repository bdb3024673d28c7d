"""JoinGroup (key 11): joins a classic group or its rebalance; the response is sent when all members have joined.

v1: rebalance timeout (KIP-62); v2: throttle time (KIP-124); v4: new members rejoin with an assigned id (KIP-394); v5:
static members (KIP-345); v7: returns the protocol type (KIP-559); v8: reason (KIP-800); v9: may skip the leader's
assignment (KIP-814).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, bytes_, int16, int32, string


class JoinGroupRequestProtocol(Message):
    name: string = ""
    metadata: bytes_ = b""


class JoinGroupRequest(Message):
    """Protocols are in order of preference."""

    group_id: Annotated[string, V(entity="groupId")] = ""
    session_timeout_ms: int32 = 0
    rebalance_timeout_ms: Annotated[int32, V("1+")] = -1  # maximum time to rejoin; version 0: the session timeout
    member_id: string = ""  # empty: not assigned yet
    group_instance_id: Annotated[string | None, V("5+", null="5+")] = None
    protocol_type: string = ""  # `consumer`, `connect`, ...
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[string | None, V("8+", null="8+")] = None


class JoinGroupResponseMember(Message):
    member_id: string = ""
    group_instance_id: Annotated[string | None, V("5+", null="5+")] = None
    metadata: bytes_ = b""


class JoinGroupResponse(Message):
    """Only the leader receives the members."""

    throttle_time_ms: Annotated[int32, V("2+")] = 0
    error_code: Annotated[
        int16,
        V(
            errors="any coordinator member INCONSISTENT_GROUP_PROTOCOL INVALID_SESSION_TIMEOUT"
            " GROUP_MAX_SIZE_REACHED MEMBER_ID_REQUIRED"
        ),
    ] = 0
    generation_id: int32 = -1
    protocol_type: Annotated[string | None, V("7+", null="7+")] = None
    protocol_name: Annotated[string | None, V("0+", null="7+")] = ""
    leader: string = ""
    skip_assignment: Annotated[boolean, V("9+")] = False
    member_id: string = ""
    members: list[JoinGroupResponseMember] = []
