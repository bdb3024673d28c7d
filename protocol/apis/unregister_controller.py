"""UnregisterController (key 94): removes a controller's registration permanently."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, int16, int32, string


class UnregisterControllerRequest(Message):
    API_KEY: ClassVar[int] = 94
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    controller_id: int32 = 0


class UnregisterControllerResponse(Message):
    API_KEY: ClassVar[int] = 94
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any controller BROKER_ID_NOT_REGISTERED")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
