"""AlterConfigs (key 33)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, int8, int16, int32, string


class AlterableConfig(Message):
    """A part of the message."""

    name: string = ""
    value: Annotated[string | None, V("0+", null="0+")] = ""


class AlterConfigsResource(Message):
    """A part of the message."""

    resource_type: int8 = 0
    resource_name: string = ""
    configs: list[AlterableConfig] = []


class AlterConfigsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    resources: list[AlterConfigsResource] = []
    validate_only: boolean = False


class AlterConfigsResourceResponse(Message):
    """A part of the message."""

    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
    resource_type: int8 = 0
    resource_name: string = ""


class AlterConfigsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    throttle_time_ms: int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
