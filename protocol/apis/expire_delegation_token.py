"""ExpireDelegationToken (key 40): a token expires earlier, or at once (KIP-48).

Version 1 changes how it is throttled (KIP-219); 2 is flexible.
"""

from __future__ import annotations

from typing import ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import Versions, bytes_, int16, int32, int64


class ExpireDelegationTokenRequest(Message):
    """The token, known by its hmac."""

    API_KEY: ClassVar[int] = 40
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    hmac: bytes_ = b""
    expiry_time_period_ms: int64 = 0  # from now; -1: at once


class ExpireDelegationTokenResponse(Message):
    """When the token expires now."""

    API_KEY: ClassVar[int] = 40
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+", client_throttles="1+")

    error_code: int16 = 0
    expiry_timestamp_ms: int64 = 0
    throttle_time_ms: int32 = 0
