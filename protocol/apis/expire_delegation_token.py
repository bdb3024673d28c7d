"""ExpireDelegationToken (key 40): shortens a token's lifetime (KIP-48)."""

from __future__ import annotations

from sluice.protocol.message import Message
from sluice.protocol.types import bytes_, int16, int32, int64


class ExpireDelegationTokenRequest(Message):
    hmac: bytes_ = b""
    expiry_time_period_ms: int64 = 0  # from now; -1: immediately


class ExpireDelegationTokenResponse(Message):
    error_code: int16 = 0
    expiry_timestamp_ms: int64 = 0
    throttle_time_ms: int32 = 0
