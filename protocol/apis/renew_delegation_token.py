"""RenewDelegationToken (key 39): extends a token's lifetime, up to its maximum (KIP-48)."""

from __future__ import annotations

from sluice.protocol.message import Message
from sluice.protocol.types import bytes_, int16, int32, int64


class RenewDelegationTokenRequest(Message):
    hmac: bytes_ = b""
    renew_period_ms: int64 = 0  # from now; -1: the broker's default


class RenewDelegationTokenResponse(Message):
    error_code: int16 = 0
    expiry_timestamp_ms: int64 = 0
    throttle_time_ms: int32 = 0
