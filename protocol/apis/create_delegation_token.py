"""CreateDelegationToken (key 38): creates a temporary secret to authenticate as its owner (KIP-48).

v3: tokens for other owners (KIP-373).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, bytes_, int16, int32, int64, string

from .describe_delegation_token import Principal


class CreateDelegationTokenRequest(Message):
    """A null owner is the requester."""

    owner_principal_type: Annotated[string | None, V("3+", null="3+")] = ""
    owner_principal_name: Annotated[string | None, V("3+", null="3+")] = ""
    renewers: list[Principal] = []
    max_lifetime_ms: int64 = 0  # -1: the broker's default


class CreateDelegationTokenResponse(Message):
    """The token; for SCRAM its id is the user name and its hmac the password."""

    error_code: int16 = 0
    principal_type: string = ""
    principal_name: string = ""
    token_requester_principal_type: Annotated[string, V("3+")] = ""
    token_requester_principal_name: Annotated[string, V("3+")] = ""
    issue_timestamp_ms: int64 = 0
    expiry_timestamp_ms: int64 = 0
    max_timestamp_ms: int64 = 0
    token_id: string = ""
    hmac: bytes_ = b""
    throttle_time_ms: int32 = 0
