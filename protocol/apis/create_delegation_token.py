"""CreateDelegationToken (key 38): a secret by which others may act as its owner for a while (KIP-48).

Version 1 changes how it is throttled (KIP-219); 2 is flexible; 3 makes tokens for other owners (KIP-373).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, bytes_, int16, int32, int64, string


class CreatableRenewers(Message):
    """Someone beside the owner who may renew the token."""

    principal_type: string = ""
    principal_name: string = ""


class CreateDelegationTokenRequest(Message):
    """A null owner is the one who asks."""

    API_KEY: ClassVar[int] = 38
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    owner_principal_type: Annotated[string | None, V("3+", null="3+")] = ""
    owner_principal_name: Annotated[string | None, V("3+", null="3+")] = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: int64 = 0  # -1: as the broker is configured


class CreateDelegationTokenResponse(Message):
    """The token: its id is the user's name and its hmac the password, for SCRAM."""

    API_KEY: ClassVar[int] = 38
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+", client_throttles="1+")

    error_code: int16 = 0
    principal_type: string = ""
    principal_name: string = ""
    token_requester_principal_type: Annotated[string, V("3+")] = ""
    token_requester_principal_name: Annotated[string, V("3+")] = ""
    issue_timestamp_ms: int64 = 0
    expiry_timestamp_ms: int64 = 0
    max_timestamp_ms: int64 = 0  # no renewal goes beyond
    token_id: string = ""
    hmac: bytes_ = b""
    throttle_time_ms: int32 = 0
