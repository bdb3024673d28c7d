"""PushTelemetry (key 72): a client's metrics for its subscription (KIP-714)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, bytes_, int8, int16, int32, uuid


class PushTelemetryRequest(Message):
    """Metrics as OpenTelemetry's MetricsData, version 1, in protobuf."""

    client_instance_id: uuid = ZERO_UUID
    subscription_id: int32 = 0
    terminating: boolean = False
    compression_type: int8 = 0
    metrics: bytes_ = b""


class PushTelemetryResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[
        int16,
        V(
            errors="any UNKNOWN_SUBSCRIPTION_ID TELEMETRY_TOO_LARGE THROTTLING_QUOTA_EXCEEDED"
            " UNSUPPORTED_COMPRESSION_TYPE INVALID_RECORD"
        ),
    ] = 0
