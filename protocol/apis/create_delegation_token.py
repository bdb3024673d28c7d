"""CreateDelegationToken (key 38)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, bytes_, int16, int32, int64, string


class CreatableRenewers(Message):
    """A part of the message."""

    principal_type: string = ""
    principal_name: string = ""


class CreateDelegationTokenRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 38
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

    owner_principal_type: Annotated[string | None, V("3+", null="3+")] = ""
    owner_principal_name: Annotated[string | None, V("3+", null="3+")] = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: int64 = 0


class CreateDelegationTokenResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 38
    VERSIONS: ClassVar[Versions] = Versions("0-3", flexible="2+")

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
