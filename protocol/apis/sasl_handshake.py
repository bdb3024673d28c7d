"""SaslHandshake (key 17)."""

from __future__ import annotations

from typing import ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import Versions, int16, string


class SaslHandshakeRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="none")

    mechanism: string = ""


class SaslHandshakeResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="none")

    error_code: int16 = 0
    mechanisms: list[string] = []
