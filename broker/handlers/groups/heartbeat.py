"""Heartbeat, key 12, versions 0-4. Follows Kafka's GroupCoordinatorService.heartbeat."""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from sluice.protocol.errors import ErrorCode

API = served("Heartbeat", "0-4")


def handle(ctx: RequestContext, request: HeartbeatRequest, broker: Broker) -> HeartbeatResponse:
    error = ctx.error_code = _heartbeat(ctx, broker, request)
    return HeartbeatResponse(error_code=error)


def _heartbeat(ctx: RequestContext, broker: Broker, request: HeartbeatRequest) -> ErrorCode:
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    return broker.groups.classic_protocol(request.group_id).heartbeat(request)
