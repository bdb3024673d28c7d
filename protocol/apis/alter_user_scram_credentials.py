"""AlterUserScramCredentials (key 51)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, bytes_, int8, int16, int32, string


class ScramCredentialDeletion(Message):
    """A part of the message."""

    name: string = ""
    mechanism: int8 = 0


class ScramCredentialUpsertion(Message):
    """A part of the message."""

    name: string = ""
    mechanism: int8 = 0
    iterations: int32 = 0
    salt: bytes_ = b""
    salted_password: bytes_ = b""


class AlterUserScramCredentialsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Message):
    """A part of the message."""

    user: string = ""
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""


class AlterUserScramCredentialsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    throttle_time_ms: int32 = 0
    results: list[AlterUserScramCredentialsResult] = []
