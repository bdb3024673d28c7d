"""CreateAcls (key 30): adds ACLs (KIP-140).

v1: resource name patterns (KIP-290); v3: users as resources (KIP-373).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int8, int16, int32, string


class AclCreation(Message):
    resource_type: int8 = 0  # 2: topic, 3: group, 4: cluster, 5: transactional id, 6: delegation token, 7: user
    resource_name: string = ""
    resource_pattern_type: Annotated[int8, V("1+")] = 3  # 3: literal, 4: prefixed
    principal: string = ""  # `User:name`
    host: string = ""  # `*`: any
    operation: int8 = 0  # 2: all, 3: read, 4: write, ..., as in Kafka's AclOperation
    permission_type: int8 = 0  # 2: deny, 3: allow


class CreateAclsRequest(Message):
    creations: list[AclCreation] = []


class AclCreationResult(Message):
    error_code: Annotated[int16, V(errors="any acls")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""


class CreateAclsResponse(Message):
    throttle_time_ms: int32 = 0
    results: Annotated[list[AclCreationResult], V(answers="creations")] = []
