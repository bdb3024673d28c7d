"""Authorization to describe or alter the configs of a resource (ControllerApis.authorizeAlterResource)."""

from sluice.broker.broker import Broker
from sluice.broker.controller.configs.resource import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC, ApiError
from sluice.broker.requests.context import RequestContext
from sluice.broker.security.acl.acl import CLUSTER_NAME, AclOperation, ResourceType
from sluice.protocol.errors import ErrorCode

_OF_CLUSTER = ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
# Config type -> resource type, and the error without authorization.
_PROTECTED = {
    TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    BROKER: _OF_CLUSTER,
    BROKER_LOGGER: _OF_CLUSTER,
    CLIENT_METRICS: _OF_CLUSTER,
}


def unauthorized(ctx: RequestContext, broker: Broker, operation: AclOperation, kind: int, name: str) -> ApiError | None:
    if kind not in _PROTECTED:
        return None
    resource_type, code = _PROTECTED[kind]
    resource = CLUSTER_NAME if resource_type == ResourceType.CLUSTER else name
    return None if broker.auth.authorize(ctx, operation, resource_type, resource) else ApiError(code, code.message)
