"""SaslHandshake (key 17): the client names the SASL mechanism it wants (KIP-43).

After version 0 the exchange goes over the connection without Kafka's framing, after version 1 in SaslAuthenticate
(KIP-152). There is no flexible version: old clients would choose it without being able to (KAFKA-9577).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, string


class SaslHandshakeRequest(Message):
    """Comes before any request but ApiVersions, and again to authenticate anew."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="none")

    mechanism: string = ""


class SaslHandshakeResponse(Message):
    """The mechanisms are listed also where the one asked for is refused."""

    API_KEY: ClassVar[int] = 17
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="none")

    error_code: Annotated[int16, V(errors="any UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE")] = 0
    mechanisms: list[string] = []
