"""ListGroups (key 16): the groups that a broker coordinates.

v1: throttle time (KIP-124); v4: states (KIP-518); v5: types (KIP-848).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, string


class ListGroupsRequest(Message):
    states_filter: Annotated[list[string], V("4+")] = []
    types_filter: Annotated[list[string], V("5+")] = []


class ListedGroup(Message):
    group_id: string = ""
    protocol_type: string = ""  # empty: a group with only committed offsets
    group_state: Annotated[string, V("4+")] = ""
    group_type: Annotated[string, V("5+")] = ""  # `classic`, `consumer`, `share` or `streams`


class ListGroupsResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: Annotated[int16, V(errors="any coordinator CLUSTER_AUTHORIZATION_FAILED")] = 0
    groups: list[ListedGroup] = []
