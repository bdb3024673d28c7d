"""IncrementalAlterConfigs (key 44): changes some configs of a resource (KIP-339)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int8, int32, string

from .alter_configs import AlterConfigsResourceResponse


class AlterableConfig(Message):
    """A change of one config; DELETE ignores the value."""

    name: string = ""
    config_operation: int8 = 0  # 0: set, 1: delete, 2: append to a list, 3: subtract from a list
    value: Annotated[string | None, V("0+", null="0+")] = ""


class AlterConfigsResource(Message):
    resource_type: int8 = 0  # as in describe_configs.py
    resource_name: string = ""
    configs: list[AlterableConfig] = []


class IncrementalAlterConfigsRequest(Message):
    """Each resource succeeds or fails independently."""

    resources: list[AlterConfigsResource] = []
    validate_only: boolean = False


class IncrementalAlterConfigsResponse(Message):
    throttle_time_ms: int32 = 0
    responses: Annotated[list[AlterConfigsResourceResponse], V(answers="resources")] = []
