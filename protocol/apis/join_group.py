"""JoinGroup (key 11): a member enters a classic group, or a rebalance of it, and waits until all others did.

Version 1 has a rebalance timeout of its own (KIP-62); 2 adds the throttle time (KIP-124); 3 changes how it is throttled
(KIP-219); 4 makes a new member join again with the id it is given (KIP-394); 5 adds static members (KIP-345); 6 is
flexible; 7 answers with the protocol type (KIP-559); 8 asks for a reason (KIP-800); 9 can tell a leader not to assign
anew (KIP-814).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, bytes_, int16, int32, string


class JoinGroupRequestProtocol(Message):
    """A way to assign that the member can follow, with what its leader would need to know."""

    name: string = ""
    metadata: bytes_ = b""


class JoinGroupRequest(Message):
    """The member's protocols stand in the order it prefers them."""

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[Versions] = Versions("0-9", flexible="6+")

    group_id: Annotated[string, V(entity="groupId")] = ""
    session_timeout_ms: int32 = 0  # without heartbeat for longer, it is dead
    rebalance_timeout_ms: Annotated[int32, V("1+")] = -1  # how long others wait for it; version 0: as above
    member_id: string = ""  # empty: not given yet
    group_instance_id: Annotated[string | None, V("5+", null="5+")] = None
    protocol_type: string = ""  # `consumer`, `connect`, ...
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[string | None, V("8+", null="8+")] = None


class JoinGroupResponseMember(Message):
    """What the leader needs to know of a member."""

    member_id: string = ""
    group_instance_id: Annotated[string | None, V("5+", null="5+")] = None
    metadata: bytes_ = b""


class JoinGroupResponse(Message):
    """Only the leader gets the members."""

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[Versions] = Versions("0-9", flexible="6+", client_throttles="3+")

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
    leader: string = ""  # the leader's member id
    skip_assignment: Annotated[boolean, V("9+")] = False
    member_id: string = ""  # of the one who asked
    members: list[JoinGroupResponseMember] = []
