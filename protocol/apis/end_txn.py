"""EndTxn (key 26)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, int16, int32, int64, string


class EndTxnRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="3+")

    transactional_id: string = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    committed: boolean = False


class EndTxnResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 26
    VERSIONS: ClassVar[Versions] = Versions("0-5", flexible="3+")

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    producer_id: Annotated[int64, V("5+")] = -1
    producer_epoch: Annotated[int16, V("5+")] = -1
