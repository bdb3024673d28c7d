"""DeleteAcls (key 31): removes ACLs that match filters (KIP-140).

v1: resource name patterns (KIP-290); v3: users as resources (KIP-373).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int8, int16, int32, string


class DeleteAclsFilter(Message):
    """A null name, principal or host matches any."""

    resource_type_filter: int8 = 0  # as in create_acls.py
    resource_name_filter: Annotated[string | None, V("0+", null="0+")] = ""
    pattern_type_filter: Annotated[int8, V("1+")] = 3  # 2: any that applies to the name, 3: literal, 4: prefixed
    principal_filter: Annotated[string | None, V("0+", null="0+")] = ""
    host_filter: Annotated[string | None, V("0+", null="0+")] = ""
    operation: int8 = 0  # Kafka's AclOperation
    permission_type: int8 = 0  # 2: deny, 3: allow


class DeleteAclsRequest(Message):
    filters: list[DeleteAclsFilter] = []


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
