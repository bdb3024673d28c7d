"""DescribeUserScramCredentials (key 50)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int8, int16, int32, string


class UserName(Message):
    """A part of the message."""

    name: string = ""


class DescribeUserScramCredentialsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    users: Annotated[list[UserName] | None, V("0+", null="0+")] = []


class CredentialInfo(Message):
    """A part of the message."""

    mechanism: int8 = 0
    iterations: int32 = 0


class DescribeUserScramCredentialsResult(Message):
    """A part of the message."""

    user: string = ""
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
    credential_infos: list[CredentialInfo] = []


class DescribeUserScramCredentialsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
    results: list[DescribeUserScramCredentialsResult] = []
