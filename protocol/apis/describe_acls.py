"""DescribeAcls (key 29): the ACLs that match a filter (KIP-140).

v1: resource name patterns (KIP-290); v3: users as resources (KIP-373). In all enumerations of ACLs, 0 is unknown and 1
any.
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int8, int16, int32, string


class DescribeAclsRequest(Message):
    """A null name, principal or host matches any."""

    resource_type_filter: int8 = 0  # as in create_acls.py
    resource_name_filter: Annotated[string | None, V("0+", null="0+")] = ""
    pattern_type_filter: Annotated[int8, V("1+")] = 3  # 2: any that applies to the name, 3: literal, 4: prefixed
    principal_filter: Annotated[string | None, V("0+", null="0+")] = ""
    host_filter: Annotated[string | None, V("0+", null="0+")] = ""
    operation: int8 = 0  # Kafka's AclOperation
    permission_type: int8 = 0  # 2: deny, 3: allow


class AclDescription(Message):
    principal: string = ""
    host: string = ""
    operation: int8 = 0
    permission_type: int8 = 0


class DescribeAclsResource(Message):
    resource_type: int8 = 0
    resource_name: string = ""
    pattern_type: Annotated[int8, V("1+")] = 3
    acls: list[AclDescription] = []


class DescribeAclsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any acls")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    resources: list[DescribeAclsResource] = []
