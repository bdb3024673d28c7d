"""`/metrics` and `/healthz` of the admin port, for those who watch a broker."""

from typing import Literal

import msgspec
from prometheus_client.exposition import choose_encoder
from starlette.responses import Response

from sluice.broker.admin.operation import AdminContext, Nothing, Operation

_FORMATS = {"text/plain": str, "application/openmetrics-text": str}


class Format(msgspec.Struct, forbid_unknown_fields=True):
    """Which format the metrics are to have: what the header `Accept` says."""

    accept: str = ""


class Health(msgspec.Struct):
    """A broker that answers is well."""

    status: Literal["ok"] = "ok"


async def _get_metrics(context: AdminContext, params: Format, body: Nothing) -> Response:
    encode, content_type = choose_encoder(params.accept)
    return Response(encode(context.metrics), headers={"content-type": content_type})


async def _get_health(context: AdminContext, params: Nothing, body: Nothing) -> Health:
    return Health()


# fmt: off
# A row of a table is read across, not down.
OPERATIONS = (
    Operation.of("GET", "/healthz", "Whether the broker is well; asks for no token.", _get_health,
                 params=Nothing, body=Nothing, answer=Health),
    Operation.of("GET", "/metrics", "The metrics, as Prometheus scrapes them.", _get_metrics,
                 params=Format, body=Nothing, answer=None, media=_FORMATS),
)
# fmt: on
