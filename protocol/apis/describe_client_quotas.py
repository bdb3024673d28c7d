"""DescribeClientQuotas (key 48)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, float64, int8, int16, int32, string


class ComponentData(Message):
    """A part of the message."""

    entity_type: string = ""
    match_type: int8 = 0
    match: Annotated[string | None, V("0+", null="0+")] = ""


class DescribeClientQuotasRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    components: list[ComponentData] = []
    strict: boolean = False


class EntityData(Message):
    """A part of the message."""

    entity_type: string = ""
    entity_name: Annotated[string | None, V("0+", null="0+")] = ""


class ValueData(Message):
    """A part of the message."""

    key: string = ""
    value: float64 = 0.0


class EntryData(Message):
    """A part of the message."""

    entity: list[EntityData] = []
    values: list[ValueData] = []


class DescribeClientQuotasResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
    entries: Annotated[list[EntryData] | None, V("0+", null="0+")] = []
