"""AlterClientQuotas (key 49): sets and removes quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, float64, int16, int32, string


class EntityData(Message):
    """One part of an entity; a null name is the default entity."""

    entity_type: string = ""  # `user`, `client-id` or `ip`
    entity_name: Annotated[string | None, V("0+", null="0+")] = ""


class OpData(Message):
    key: string = ""  # `producer_byte_rate`, ...
    value: float64 = 0.0
    remove: boolean = False


class EntryData(Message):
    entity: list[EntityData] = []
    ops: list[OpData] = []


class AlterClientQuotasRequest(Message):
    """Each entity succeeds or fails independently."""

    entries: list[EntryData] = []
    validate_only: boolean = False


class EntryResult(Message):
    error_code: Annotated[int16, V(errors="any controller INVALID_CONFIG")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error="message")] = ""
    entity: Annotated[list[EntityData], V(map_key=True)] = []


class AlterClientQuotasResponse(Message):
    throttle_time_ms: int32 = 0
    entries: list[EntryResult] = []
