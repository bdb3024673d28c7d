"""SaslAuthenticate (key 36): one step of a SASL exchange (KIP-152).

v1: session lifetime (KIP-368).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, bytes_, int16, int64, string


class SaslAuthenticateRequest(Message):
    auth_bytes: bytes_ = b""


class SaslAuthenticateResponse(Message):
    error_code: Annotated[int16, V(errors="any SASL_AUTHENTICATION_FAILED ILLEGAL_SASL_STATE")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    auth_bytes: bytes_ = b""
    session_lifetime_ms: Annotated[int64, V("1+")] = 0  # time until re-authentication; 0: unlimited
