"""PushTelemetry, key 72, version 0: a client's metrics, which are decompressed and counted (KIP-714).

Served only with `sluice.telemetry`. Follows ClientMetricsManager.processPushTelemetryRequest.
"""

from typing import TYPE_CHECKING

from sluice.broker.controller.configs.client_metrics_manager import is_reserved
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.protocol.apis.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from sluice.protocol.errors import ErrorCode

from .get_telemetry_subscriptions import selectors

if TYPE_CHECKING:
    from sluice.broker.handlers.services import ConfigServices

API = served("PushTelemetry", "0", requires="sluice.telemetry")


def handle(ctx: RequestContext, request: PushTelemetryRequest, broker: "ConfigServices") -> PushTelemetryResponse:
    client_instance_id = request.client_instance_id
    if is_reserved(client_instance_id):
        ctx.error_code = ErrorCode.INVALID_REQUEST
    else:
        telemetry = broker.telemetry
        ctx.error_code = telemetry.push(
            telemetry.instance(client_instance_id, selectors(ctx, client_instance_id), ctx.now_ms),
            request.subscription_id,
            request.metrics,
            request.compression_type,
            ctx.now_ms,
            terminating=request.terminating,
        )
    return PushTelemetryResponse(error_code=ctx.error_code)
