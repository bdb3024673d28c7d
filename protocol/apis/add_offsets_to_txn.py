"""AddOffsetsToTxn (key 25)."""

from __future__ import annotations

from typing import ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import Versions, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="3+")

    transactional_id: string = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    group_id: string = ""


class AddOffsetsToTxnResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 25
    VERSIONS: ClassVar[Versions] = Versions("0-4", flexible="3+")

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
