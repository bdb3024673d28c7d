"""AlterConfigs (key 33): sets all configs of a resource and resets the others to their defaults (KIP-133).

Superseded by IncrementalAlterConfigs.
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int8, int16, int32, string


class AlterableConfig(Message):
    """A config. Null is valid on the wire, but rejected."""

    name: string = ""
    value: Annotated[string | None, V("0+", null="0+")] = ""


class AlterConfigsResource(Message):
    resource_type: int8 = 0  # as in describe_configs.py
    resource_name: string = ""
    configs: list[AlterableConfig] = []


class AlterConfigsRequest(Message):
    """Each resource succeeds or fails independently."""

    resources: list[AlterConfigsResource] = []
    validate_only: boolean = False


class AlterConfigsResourceResponse(Message):
    error_code: Annotated[int16, V(errors="any config")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    resource_type: Annotated[int8, V(map_key=True)] = 0
    resource_name: Annotated[string, V(map_key=True)] = ""


class AlterConfigsResponse(Message):
    throttle_time_ms: int32 = 0
    responses: Annotated[list[AlterConfigsResourceResponse], V(answers="resources")] = []
