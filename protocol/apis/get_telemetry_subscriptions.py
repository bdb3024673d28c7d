"""GetTelemetrySubscriptions (key 71)."""

from __future__ import annotations

from typing import ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, Versions, boolean, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 71
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    client_instance_id: uuid = ZERO_UUID


class GetTelemetrySubscriptionsResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 71
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    client_instance_id: uuid = ZERO_UUID
    subscription_id: int32 = 0
    accepted_compression_types: list[int8] = []
    push_interval_ms: int32 = 0
    telemetry_max_bytes: int32 = 0
    delta_temporality: boolean = False
    requested_metrics: list[string] = []
