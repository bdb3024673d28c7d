"""DeleteAcls (key 31): removes ACLs that match filters (KIP-140).

v1: resource name patterns (KIP-290); v3: users as resources (KIP-373).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int8, int16, int32, string

from .describe_acls import DescribeAclsRequest


class DeleteAclsRequest(Message):
    filters: list[DescribeAclsRequest] = []


class DeleteAclsMatchingAcl(Message):
    error_code: Annotated[int16, V(errors="")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
    resource_type: int8 = 0
    resource_name: string = ""
    pattern_type: Annotated[int8, V("1+")] = 3
    principal: string = ""
    host: string = ""
    operation: int8 = 0
    permission_type: int8 = 0


class DeleteAclsFilterResult(Message):
    error_code: Annotated[int16, V(errors="any acls")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


class DeleteAclsResponse(Message):
    throttle_time_ms: int32 = 0
    filter_results: Annotated[list[DeleteAclsFilterResult], V(answers="filters")] = []
