"""PushTelemetry, key 72, version 0: decompresses and counts metrics (KIP-714).

Advertised only with `sluice.telemetry`, as Kafka does with a plugin; without it served, too. Follows
ClientMetricsManager.processPushTelemetryRequest.

Metrics of more than 1 MiB are decompressed in the worker: 3 KB can become 100 MB, which takes 0.1 s.
"""

from sluice.broker.broker import Broker
from sluice.broker.controller.configs.client_metrics_manager import is_reserved, unpacked_size
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.requests.worker import respond_after
from sluice.protocol.apis.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.invalid import SectionTooLarge

from .get_telemetry_subscriptions import selectors

API = served("PushTelemetry", "0", advertised_with="sluice.telemetry")

_SHORT_BYTES = 1024 * 1024


def handle(ctx: RequestContext, request: PushTelemetryRequest, broker: Broker) -> Message | Outcome:
    def respond(code: ErrorCode) -> PushTelemetryResponse:
        ctx.error_code = code
        return PushTelemetryResponse(error_code=code)

    client_instance_id = request.client_instance_id
    if is_reserved(client_instance_id):
        return respond(ErrorCode.INVALID_REQUEST)
    telemetry, metrics, compression = broker.telemetry, request.metrics, request.compression_type
    known_by = selectors(ctx, client_instance_id)
    instance = telemetry.instance(client_instance_id, known_by, ctx.session.connection, ctx.now_ms)
    code = telemetry.check_push(
        instance, request.subscription_id, metrics, compression, ctx.now_ms, terminating=request.terminating
    )
    if code or not metrics:
        return respond(code)
    try:
        size = unpacked_size(metrics, compression, _SHORT_BYTES)
    except SectionTooLarge:
        return respond_after(
            ctx,
            broker.runtime.worker,
            lambda: unpacked_size(metrics, compression),
            lambda size: respond(telemetry.pushed(instance, size)),
            len(metrics),
        )
    return respond(telemetry.pushed(instance, size))
