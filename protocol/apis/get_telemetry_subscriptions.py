"""GetTelemetrySubscriptions (key 71): the client metrics that the cluster subscribes to (KIP-714)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(Message):
    """A new client has id zero."""

    client_instance_id: uuid = ZERO_UUID


class GetTelemetrySubscriptionsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any")] = 0
    client_instance_id: uuid = ZERO_UUID  # assigned to a new client, else zero
    subscription_id: int32 = 0
    accepted_compression_types: list[int8] = []
    push_interval_ms: int32 = 0
    telemetry_max_bytes: int32 = 0
    delta_temporality: boolean = False
    requested_metrics: list[string] = []  # prefixes; no items: no metrics, an empty item: all
