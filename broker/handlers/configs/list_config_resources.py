"""ListConfigResources, key 74, versions 0-1."""

from sluice.broker.broker import Broker
from sluice.broker.controller.configs.resource import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis import list_config_resources as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("ListConfigResources", "0-1")

_TYPES = (GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC)


def handle(ctx: RequestContext, request: api.ListConfigResourcesRequest, broker: Broker) -> Message:
    if not broker.auth.authorize_cluster(ctx, AclOperation.DESCRIBE_CONFIGS):
        return failed(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    supported = _TYPES if ctx.version >= 1 else (CLIENT_METRICS,)
    requested = request.resource_types or supported
    if not set(supported).issuperset(requested):
        return failed(ctx, request, ErrorCode.UNSUPPORTED_VERSION)
    stores = broker.configs.stores
    return api.ListConfigResourcesResponse(
        config_resources=[
            api.ConfigResource(resource_name=name, resource_type=kind)
            for kind in _TYPES
            if kind in requested
            for name in stores[BROKER if kind == BROKER_LOGGER else kind].names()
        ]
    )
