"""FindCoordinator (key 10): the broker that coordinates a group, a transactional id or a share partition.

v1: key type, throttle time; v4: several keys (KIP-699); v5: a new error code (KIP-890); v6: share groups (KIP-932),
with keys `group:topic id:partition`.
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int8, int16, int32, string


class FindCoordinatorRequest(Message):
    key: Annotated[string, V("0-3", entity={0: "groupId", 1: "transactionalId"}, entity_by="key_type")] = ""
    key_type: Annotated[int8, V("1+")] = 0  # 0: group, 1: transaction, 2: share
    coordinator_keys: Annotated[
        list[string], V("4+", entity={0: "groupId", 1: "transactionalId"}, entity_by="key_type")
    ] = []


class Coordinator(Message):
    key: Annotated[string, V("4+", map_key=True)] = ""
    node_id: Annotated[int32, V("4+", on_error=-1)] = 0
    host: Annotated[string, V("4+", address="node_id")] = ""
    port: Annotated[int32, V("4+", on_error=-1, address="node_id")] = 0
    error_code: Annotated[
        int16, V("4+", errors="any coordinator TRANSACTIONAL_ID_AUTHORIZATION_FAILED INVALID_TOPIC_EXCEPTION")
    ] = 0
    error_message: Annotated[string | None, V("4+", null="4+", on_error="message")] = ""


class FindCoordinatorResponse(Message):
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    error_code: Annotated[int16, V("0-3", errors="")] = 0
    error_message: Annotated[string | None, V("1-3", null="1-3", on_error="message")] = ""
    node_id: Annotated[int32, V("0-3", on_error=-1)] = 0
    host: Annotated[string, V("0-3", address="node_id")] = ""
    port: Annotated[int32, V("0-3", on_error=-1, address="node_id")] = 0
    coordinators: Annotated[list[Coordinator], V("4+", answers="coordinator_keys")] = []
