"""DescribeDelegationToken (key 41): the tokens of some owners, or all that the requester may see (KIP-48).

v3: the token's requester (KIP-373).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, bytes_, int16, int32, int64, string


class Principal(Message):
    principal_type: string = ""
    principal_name: string = ""


class DescribeDelegationTokenRequest(Message):
    """Null: all owners."""

    owners: Annotated[list[Principal] | None, V("0+", null="0+")] = []


class DescribedDelegationToken(Message):
    principal_type: string = ""
    principal_name: string = ""
    token_requester_principal_type: Annotated[string, V("3+")] = ""
    token_requester_principal_name: Annotated[string, V("3+")] = ""
    issue_timestamp: int64 = 0
    expiry_timestamp: int64 = 0
    max_timestamp: int64 = 0
    token_id: string = ""
    hmac: bytes_ = b""
    renewers: list[Principal] = []


class DescribeDelegationTokenResponse(Message):
    error_code: int16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: int32 = 0
