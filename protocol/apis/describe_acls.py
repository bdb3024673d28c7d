"""DescribeAcls (key 29): the access control lists that match a filter (KIP-140).

Version 1 adds patterns of resource names (KIP-290); 2 is flexible; 3 adds users as resources (KIP-373). What is unknown
is 0 and what is any 1, in all of the enumerations here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int8, int16, int32, string


class DescribeAclsRequest(Message):
    """A null name, principal or host matches all."""

    API_KEY: ClassVar[int] = 29
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    resource_type_filter: int8 = 0  # 2: topic, 3: group, 4: cluster, 5: transactional id, 6: delegation token, 7: user
    resource_name_filter: Annotated[string | None, V("0+", null="0+")] = ""
    pattern_type_filter: Annotated[int8, V("1+")] = 3  # 2: all that apply to the name, 3: literal, 4: prefixed
    principal_filter: Annotated[string | None, V("0+", null="0+")] = ""
    host_filter: Annotated[string | None, V("0+", null="0+")] = ""
    operation: int8 = 0  # 2: all, 3: read, 4: write, ..., as Kafka's AclOperation
    permission_type: int8 = 0  # 2: deny, 3: allow


class AclDescription(Message):
    """Who may, or must not, do what from where."""

    principal: string = ""
    host: string = ""
    operation: int8 = 0
    permission_type: int8 = 0


class DescribeAclsResource(Message):
    """What is protected, and its entries that match."""

    resource_type: int8 = 0
    resource_name: string = ""
    pattern_type: Annotated[int8, V("1+")] = 3
    acls: list[AclDescription] = []


class DescribeAclsResponse(Message):
    """Entries, by resource."""

    API_KEY: ClassVar[int] = 29
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+", client_throttles="1+")

    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any acls")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    resources: list[DescribeAclsResource] = []
