"""AlterClientQuotas (key 49)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, float64, int16, int32, string


class EntityData(Message):
    """A part of the message."""

    entity_type: string = ""
    entity_name: Annotated[string | None, V("0+", null="0+")] = ""


class OpData(Message):
    """A part of the message."""

    key: string = ""
    value: float64 = 0.0
    remove: boolean = False


class EntryData(Message):
    """A part of the message."""

    entity: list[EntityData] = []
    ops: list[OpData] = []


class AlterClientQuotasRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    entries: list[EntryData] = []
    validate_only: boolean = False


class EntryResult(Message):
    """A part of the message."""

    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
    entity: list[EntityData] = []


class AlterClientQuotasResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    throttle_time_ms: int32 = 0
    entries: list[EntryResult] = []
