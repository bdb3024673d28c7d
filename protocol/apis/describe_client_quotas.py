"""DescribeClientQuotas (key 48): the quotas of users, client ids and addresses that match a filter (KIP-546)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, float64, int8, int16, int32, string

from .alter_client_quotas import EntityData


class ComponentData(Message):
    entity_type: string = ""  # `user`, `client-id` or `ip`
    match_type: int8 = 0  # 0: this name, 1: the default, 2: any name
    match: Annotated[string | None, V("0+", null="0+")] = ""


class DescribeClientQuotasRequest(Message):
    components: list[ComponentData] = []
    strict: boolean = False  # whether to exclude entities with other parts


class ValueData(Message):
    key: string = ""  # `producer_byte_rate`, ...
    value: float64 = 0.0


class EntryData(Message):
    entity: list[EntityData] = []
    values: list[ValueData] = []


class DescribeClientQuotasResponse(Message):
    """The entries are null on errors."""

    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any controller")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    entries: Annotated[list[EntryData] | None, V("0+", null="0+")] = []
