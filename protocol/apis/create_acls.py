"""CreateAcls (key 30)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int8, int16, int32, string


class AclCreation(Message):
    """A part of the message."""

    resource_type: int8 = 0
    resource_name: string = ""
    resource_pattern_type: Annotated[int8, V("1+")] = 3
    principal: string = ""
    host: string = ""
    operation: int8 = 0
    permission_type: int8 = 0


class CreateAclsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    creations: list[AclCreation] = []


class AclCreationResult(Message):
    """A part of the message."""

    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""


class CreateAclsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    throttle_time_ms: int32 = 0
    results: list[AclCreationResult] = []
