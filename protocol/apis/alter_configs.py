"""AlterConfigs (key 33): sets all settings of a resource; those not named go back to their defaults (KIP-133).

Version 1 changes how it is throttled (KIP-219); 2 is flexible. IncrementalAlterConfigs took its place.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, int8, int16, int32, string


class AlterableConfig(Message):
    """A setting. Null is refused, though it can be written."""

    name: string = ""
    value: Annotated[string | None, V("0+", null="0+")] = ""


class AlterConfigsResource(Message):
    """A resource and all the settings it shall have."""

    resource_type: int8 = 0  # 2: topic, 4: broker, 8: broker logger, 16: client metrics, 32: group
    resource_name: string = ""
    configs: list[AlterableConfig] = []


class AlterConfigsRequest(Message):
    """Each resource succeeds or fails on its own."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    resources: list[AlterConfigsResource] = []
    validate_only: boolean = False  # change nothing


class AlterConfigsResourceResponse(Message):
    """What became of one resource."""

    error_code: Annotated[int16, V(errors="any config")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    resource_type: Annotated[int8, V(map_key=True)] = 0
    resource_name: Annotated[string, V(map_key=True)] = ""


class AlterConfigsResponse(Message):
    """One result a resource."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+", client_throttles="1+")

    throttle_time_ms: int32 = 0
    responses: Annotated[list[AlterConfigsResourceResponse], V(answers="resources")] = []
