"""DescribeAcls (key 29)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int8, int16, int32, string


class DescribeAclsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 29
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    resource_type_filter: int8 = 0
    resource_name_filter: Annotated[string | None, V("0+", null="0+")] = ""
    pattern_type_filter: Annotated[int8, V("1+")] = 3
    principal_filter: Annotated[string | None, V("0+", null="0+")] = ""
    host_filter: Annotated[string | None, V("0+", null="0+")] = ""
    operation: int8 = 0
    permission_type: int8 = 0


class AclDescription(Message):
    """A part of the message."""

    principal: string = ""
    host: string = ""
    operation: int8 = 0
    permission_type: int8 = 0


class DescribeAclsResource(Message):
    """A part of the message."""

    resource_type: int8 = 0
    resource_name: string = ""
    pattern_type: Annotated[int8, V("1+")] = 3
    acls: list[AclDescription] = []


class DescribeAclsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 29
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
    resources: list[DescribeAclsResource] = []
