"""`/metrics` and `/healthz` of the admin port, for monitoring."""

from typing import Literal

import msgspec
from prometheus_client.exposition import choose_encoder
from starlette.responses import Response

from sluice.broker.admin.operation import AdminContext, Nothing, Operation

_FORMATS = {"text/plain": str, "application/openmetrics-text": str}


class Format(msgspec.Struct, forbid_unknown_fields=True):
    """The format of the metrics, from the header `Accept`."""

    accept: str = ""


class Health(msgspec.Struct):
    """The health of a broker; a response at all means that it is healthy."""

    status: Literal["ok"] = "ok"


async def _get_metrics(context: AdminContext, params: Format, body: Nothing) -> Response:
    encode, content_type = choose_encoder(params.accept)
    return Response(encode(context.metrics), headers={"content-type": content_type})


async def _get_health(context: AdminContext, params: Nothing, body: Nothing) -> Health:
    return Health()


OPERATIONS = (
    Operation.of("GET", "/healthz", "Return whether the broker is healthy; no token required.", _get_health),
    Operation.of("GET", "/metrics", "Return the metrics in a format for Prometheus.", _get_metrics, media=_FORMATS),
)
