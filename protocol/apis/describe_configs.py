"""DescribeConfigs (key 32): the configs of topics, brokers and other resources, with the source of each value.

v1: the source instead of `is_default`, and synonyms (KIP-226); v3: types and documentation (KIP-569).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int8, int16, int32, string


class DescribeConfigsResource(Message):
    """A resource and the names of its configs; null: all."""

    resource_type: int8 = 0  # 2: topic, 4: broker, 8: broker logger, 16: client metrics, 32: group
    resource_name: string = ""
    configuration_keys: Annotated[list[string] | None, V("0+", null="0+")] = []


class DescribeConfigsRequest(Message):
    resources: list[DescribeConfigsResource] = []
    include_synonyms: Annotated[boolean, V("1+")] = False
    include_documentation: Annotated[boolean, V("3+")] = False


class DescribeConfigsSynonym(Message):
    name: Annotated[string, V("1+")] = ""
    value: Annotated[string | None, V("1+", null="0+")] = ""
    source: Annotated[int8, V("1+")] = 0


class DescribeConfigsResourceResult(Message):
    name: string = ""
    value: Annotated[string | None, V("0+", null="0+")] = ""
    read_only: boolean = False
    is_default: Annotated[boolean, V("0")] = False
    config_source: Annotated[int8, V("1+")] = -1  # 1: topic, 2: this broker, 4: properties file, 5: default, ...
    is_sensitive: boolean = False
    synonyms: Annotated[list[DescribeConfigsSynonym], V("1+")] = []
    config_type: Annotated[int8, V("3+")] = 0  # 1: boolean, 2: string, 3: int, 5: long, 7: list, ...
    documentation: Annotated[string | None, V("3+", null="0+")] = ""


class DescribeConfigsResult(Message):
    error_code: Annotated[int16, V(errors="any config")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    resource_type: Annotated[int8, V(map_key=True)] = 0
    resource_name: Annotated[string, V(map_key=True)] = ""
    configs: list[DescribeConfigsResourceResult] = []


class DescribeConfigsResponse(Message):
    throttle_time_ms: int32 = 0
    results: Annotated[list[DescribeConfigsResult], V(answers="resources")] = []
