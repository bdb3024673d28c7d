"""UnregisterBroker (key 64): a broker that is gone for good leaves a KRaft cluster's metadata. Flexible."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, string


class UnregisterBrokerRequest(Message):
    """The broker that is gone."""

    API_KEY: ClassVar[int] = 64
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    broker_id: int32 = 0


class UnregisterBrokerResponse(Message):
    """Whether it is forgotten."""

    API_KEY: ClassVar[int] = 64
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+", client_throttles="0+")

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
