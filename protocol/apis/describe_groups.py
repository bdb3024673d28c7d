"""DescribeGroups (key 15): state and members of classic groups.

v1: throttle time (KIP-124); v3: authorized operations (KIP-430); v4: static members (KIP-345); v6: an error for missing
groups, which were reported as dead before (KIP-1043).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, bytes_, int16, int32, string


class DescribeGroupsRequest(Message):
    groups: Annotated[list[string], V(entity="groupId")] = []
    include_authorized_operations: Annotated[boolean, V("3+")] = False


class DescribedGroupMember(Message):
    member_id: string = ""
    group_instance_id: Annotated[string | None, V("4+", null="4+")] = None
    client_id: string = ""
    client_host: string = ""
    member_metadata: bytes_ = b""
    member_assignment: bytes_ = b""


class DescribedGroup(Message):
    """A group; up to version 5 a missing one is dead, without an error."""

    error_code: Annotated[int16, V(errors="any coordinator GROUP_ID_NOT_FOUND")] = 0
    error_message: Annotated[string | None, V("6+", null="6+")] = None
    group_id: Annotated[string, V(entity="groupId")] = ""
    group_state: string = ""
    protocol_type: string = ""
    protocol_data: string = ""  # the common protocol, while the group is stable
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[int32, V("3+")] = -0x8000_0000


class DescribeGroupsResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    groups: list[DescribedGroup] = []
