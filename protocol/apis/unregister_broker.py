"""UnregisterBroker (key 64): removes a broker from a KRaft cluster's metadata permanently. Flexible."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, string


class UnregisterBrokerRequest(Message):
    broker_id: int32 = 0


class UnregisterBrokerResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any controller BROKER_ID_NOT_REGISTERED")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
