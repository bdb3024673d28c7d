"""DescribeGroups (key 15)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, bytes_, int16, int32, string


class DescribeGroupsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[Versions] = Versions("0-6", flexible="5+")

    groups: list[string] = []
    include_authorized_operations: Annotated[boolean, V("3+")] = False


class DescribedGroupMember(Message):
    """A part of the message."""

    member_id: string = ""
    group_instance_id: Annotated[string | None, V("4+", null="4+")] = None
    client_id: string = ""
    client_host: string = ""
    member_metadata: bytes_ = b""
    member_assignment: bytes_ = b""


class DescribedGroup(Message):
    """A part of the message."""

    error_code: int16 = 0
    error_message: Annotated[string | None, V("6+", null="6+")] = None
    group_id: string = ""
    group_state: string = ""
    protocol_type: string = ""
    protocol_data: string = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[int32, V("3+")] = -0x8000_0000


class DescribeGroupsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[Versions] = Versions("0-6", flexible="5+")

    throttle_time_ms: Annotated[int32, V("1+")] = 0
    groups: list[DescribedGroup] = []
