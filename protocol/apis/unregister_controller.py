"""UnregisterController (key 94): removes a controller's registration permanently."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, string


class UnregisterControllerRequest(Message):
    controller_id: int32 = 0


class UnregisterControllerResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any controller BROKER_ID_NOT_REGISTERED")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
