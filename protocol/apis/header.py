"""The headers before every request and response. Not APIs: they have no key.

A request header of version 2 still writes the client id with an int16 length, so that any broker can read the header of
any ApiVersions request; that is why it is not compact here.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, string


class RequestHeader(Message):
    """What a request is, and which answer belongs to it. Version 0 (ControlledShutdown v0 only) has no client id."""

    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    request_api_key: int16 = 0
    request_api_version: int16 = 0
    correlation_id: int32 = 0  # chosen by the client, repeated in the response
    client_id: Annotated[string | None, V("1+", null="1+", compact=False)] = ""


class ResponseHeader(Message):
    """Which request this answers."""

    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    correlation_id: int32 = 0
