"""ListConfigResources (key 74)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int8, int16, int32, string


class ListConfigResourcesRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 74
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="0+")

    resource_types: Annotated[list[int8], V("1+")] = []


class ConfigResource(Message):
    """A part of the message."""

    resource_name: string = ""
    resource_type: Annotated[int8, V("1+")] = 16


class ListConfigResourcesResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 74
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="0+")

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    config_resources: list[ConfigResource] = []
