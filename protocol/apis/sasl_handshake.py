"""SaslHandshake (key 17): selects the SASL mechanism (KIP-43).

After version 0 the exchange is sent without Kafka's framing, after version 1 in SaslAuthenticate (KIP-152). There is no
flexible version, because old clients would select it without supporting it (KAFKA-9577).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, string


class SaslHandshakeRequest(Message):
    mechanism: string = ""


class SaslHandshakeResponse(Message):
    error_code: Annotated[int16, V(errors="any UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE")] = 0
    mechanisms: list[string] = []
