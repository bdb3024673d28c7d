"""AlterUserScramCredentials (key 51): sets and removes users' SCRAM credentials (KIP-554)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, bytes_, int8, int16, int32, string


class ScramCredentialDeletion(Message):
    name: string = ""
    mechanism: int8 = 0  # 1: SCRAM-SHA-256, 2: SCRAM-SHA-512


class ScramCredentialUpsertion(Message):
    """A credential to set. The client salts the password, so the broker never receives it."""

    name: string = ""
    mechanism: int8 = 0  # 1: SCRAM-SHA-256, 2: SCRAM-SHA-512
    iterations: int32 = 0
    salt: bytes_ = b""
    salted_password: bytes_ = b""


class AlterUserScramCredentialsRequest(Message):
    """Each user may occur only once in both lists."""

    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Message):
    user: Annotated[string, V(map_key=True)] = ""
    error_code: Annotated[int16, V(errors="any scram controller")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""


class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: int32 = 0
    results: list[AlterUserScramCredentialsResult] = []
