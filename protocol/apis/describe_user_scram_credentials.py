"""DescribeUserScramCredentials (key 50): users' SCRAM mechanisms, without secrets (KIP-554)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int8, int16, int32, string


class UserName(Message):
    name: string = ""


class DescribeUserScramCredentialsRequest(Message):
    """Null or empty: all users."""

    users: Annotated[list[UserName] | None, V("0+", null="0+")] = []


class CredentialInfo(Message):
    mechanism: int8 = 0  # 1: SCRAM-SHA-256, 2: SCRAM-SHA-512
    iterations: int32 = 0


class DescribeUserScramCredentialsResult(Message):
    user: Annotated[string, V(map_key=True, answers="name")] = ""
    error_code: Annotated[int16, V(errors="any scram")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    credential_infos: list[CredentialInfo] = []


class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="controller")] = 0
    error_message: Annotated[string | None, V(null="0+", on_error=None)] = ""
    results: Annotated[list[DescribeUserScramCredentialsResult], V(answers="users")] = []
