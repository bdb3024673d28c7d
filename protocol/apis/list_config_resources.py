"""ListConfigResources (key 74): the resources that have their own configs.

v0: named ListClientMetricsResources, only client metrics (KIP-714); v1: all types (KIP-1142).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int8, int16, int32, string


class ListConfigResourcesRequest(Message):
    """No types: all types."""

    resource_types: Annotated[list[int8], V("1+")] = []  # 2: topic, 4: broker, 8: broker logger, ...


class ConfigResource(Message):
    resource_name: string = ""
    resource_type: Annotated[int8, V("1+")] = 16  # client metrics, the only type in version 0


class ListConfigResourcesResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any CLUSTER_AUTHORIZATION_FAILED")] = 0
    config_resources: list[ConfigResource] = []
