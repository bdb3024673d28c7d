"""DescribeGroups (key 15): state and members of classic groups.

Version 1 adds the throttle time (KIP-124); 2 changes how it is throttled (KIP-219); 3 adds authorized operations
(KIP-430); 4 static members (KIP-345); 5 is flexible; 6 says that a group is not there, which before was a dead group
(KIP-1043).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, bytes_, int16, int32, string


class DescribeGroupsRequest(Message):
    """Groups, which the asked broker must coordinate."""

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[Versions] = Versions("0-6", flexible="5+")

    groups: Annotated[list[string], V(entity="groupId")] = []
    include_authorized_operations: Annotated[boolean, V("3+")] = False


class DescribedGroupMember(Message):
    """A member. Its bytes are given only while the group is stable."""

    member_id: string = ""
    group_instance_id: Annotated[string | None, V("4+", null="4+")] = None
    client_id: string = ""
    client_host: string = ""
    member_metadata: bytes_ = b""
    member_assignment: bytes_ = b""


class DescribedGroup(Message):
    """A group; until version 5 one that does not exist is dead and has no error."""

    error_code: Annotated[int16, V(errors="any coordinator GROUP_ID_NOT_FOUND")] = 0
    error_message: Annotated[string | None, V("6+", null="6+")] = None
    group_id: Annotated[string, V(entity="groupId")] = ""
    group_state: string = ""
    protocol_type: string = ""
    protocol_data: string = ""  # the protocol all agreed on, while the group is stable
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[int32, V("3+")] = -0x8000_0000  # bits; the default: not asked for


class DescribeGroupsResponse(Message):
    """One description a group."""

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[Versions] = Versions("0-6", flexible="5+", client_throttles="2+")

    throttle_time_ms: Annotated[int32, V("1+")] = 0
    groups: list[DescribedGroup] = []
