"""The headers of all requests and responses. They have no key, as they are not APIs.

A request header of version 2 still has an int16 length for the client id, so that any broker can read that of any
ApiVersions request.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, string


class RequestHeader(Message):
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="2+")

    request_api_key: int16 = 0
    request_api_version: int16 = 0
    correlation_id: int32 = 0
    client_id: Annotated[string | None, V("1+", null="1+", compact=False)] = ""


class ResponseHeader(Message):
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="1+")

    correlation_id: int32 = 0
