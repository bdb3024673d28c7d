"""GetTelemetrySubscriptions, key 71, version 0 (KIP-714).

Advertised only with `sluice.telemetry`, as Kafka does with a plugin; without it served, too. Follows
ClientMetricsManager.processGetTelemetrySubscriptionRequest.
"""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.protocol.apis import get_telemetry_subscriptions as api
from sluice.protocol.records.compression import GZIP, LZ4, SNAPPY, ZSTD
from sluice.protocol.types import ZERO_UUID
from sluice.protocol.uuids import printed_uuid

API = served("GetTelemetrySubscriptions", "0", advertised_with="sluice.telemetry")

_ACCEPTED_COMPRESSION_TYPES = [ZSTD, LZ4, GZIP, SNAPPY]


def handle(
    ctx: RequestContext, request: api.GetTelemetrySubscriptionsRequest, broker: Broker
) -> api.GetTelemetrySubscriptionsResponse:
    telemetry = broker.telemetry
    client_instance_id = request.client_instance_id
    if client_instance_id == ZERO_UUID:
        client_instance_id = telemetry.new_instance_id()
    known_by = selectors(ctx, client_instance_id)
    instance = telemetry.instance(client_instance_id, known_by, ctx.session.connection, ctx.now_ms)
    code = ctx.error_code = telemetry.get(instance, ctx.now_ms)
    if code:
        return api.GetTelemetrySubscriptionsResponse(error_code=code)
    subscription = instance.subscription
    return api.GetTelemetrySubscriptionsResponse(
        client_instance_id=client_instance_id,
        subscription_id=subscription.id,
        accepted_compression_types=_ACCEPTED_COMPRESSION_TYPES,
        push_interval_ms=subscription.interval_ms,
        telemetry_max_bytes=telemetry.max_bytes,
        delta_temporality=True,
        requested_metrics=subscription.metrics,
    )


def selectors(ctx: RequestContext, client_instance_id: bytes) -> dict[str, str]:
    address, _, port = ctx.session.connection.peer.rpartition(":")
    name, version = ctx.session.client_software
    return {
        "client_instance_id": printed_uuid(client_instance_id),
        "client_id": ctx.session.client_id,
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": address,
        "client_source_port": port,
    }
