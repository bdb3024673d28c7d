"""FindCoordinator, key 10, versions 0-6.

Follows KafkaApis.getCoordinator. Different on purpose: the first request creates the coordinator's topic at once; Kafka
returns COORDINATOR_NOT_AVAILABLE until it exists.
"""

from typing import TYPE_CHECKING

from sluice.broker.coordinator.common.coordinator_log import coordinator_of
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from sluice.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from sluice.broker.handlers.services import GroupServices

API = served("FindCoordinator", "0-6")

_GROUP, _TRANSACTION, _SHARE = range(3)
_TOPICS = {_GROUP: GROUP_METADATA_TOPIC, _TRANSACTION: TRANSACTION_STATE_TOPIC, _SHARE: SHARE_GROUP_STATE_TOPIC}
# Resource type of each key type, and the error without authorization.
_PROTECTED = {
    _GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    _TRANSACTION: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
_BATCHED_SINCE, _SHARE_SINCE = 4, 6


def handle(ctx: RequestContext, request: FindCoordinatorRequest, broker: "GroupServices") -> FindCoordinatorResponse:
    keys = request.coordinator_keys if ctx.version >= _BATCHED_SINCE else [request.key]
    found = [_coordinator(ctx, broker, request.key_type, key) for key in ctx.sliced(keys)]
    if ctx.version >= _BATCHED_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    one = found[0]
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


def _coordinator(ctx: RequestContext, broker: "GroupServices", key_type: int, key: str) -> Coordinator:
    if key_type not in _TOPICS:
        return _error_result(ctx, key, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.message)
    if key_type == _SHARE and (ctx.version < _SHARE_SINCE or not _names_share_partition(key)):
        return _error_result(ctx, key, ErrorCode.INVALID_REQUEST, None)
    denied_code = _denied(ctx, broker, key_type, key)
    if denied_code:
        return _error_result(ctx, key, denied_code)
    coordinator = coordinator_of(broker, _TOPICS[key_type], key)
    if coordinator is None:
        return _error_result(ctx, key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    at = ctx.session.endpoint_of(coordinator)
    message = None if ctx.version >= _BATCHED_SINCE else ErrorCode.NONE.name
    return Coordinator(key=key, node_id=coordinator.node_id, host=at.host, port=at.port, error_message=message)


def _denied(ctx: RequestContext, broker: "GroupServices", key_type: int, key: str) -> ErrorCode:
    if key_type == _SHARE:
        is_authorized = broker.auth.authorize_cluster(ctx, AclOperation.CLUSTER_ACTION)
        return ErrorCode.NONE if is_authorized else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    resource_type, denied_code = _PROTECTED[key_type]
    is_authorized = broker.auth.authorize(ctx, AclOperation.DESCRIBE, resource_type, key)
    return ErrorCode.NONE if is_authorized else denied_code


def _names_share_partition(key: str) -> bool:
    from sluice.broker.coordinator.share.state import parse_coordinator_key  # deferred: only for share groups

    return parse_coordinator_key(key) is not None


def _error_result(ctx: RequestContext, key: str, code: ErrorCode, batched_message: str | None = "") -> Coordinator:
    ctx.error_code = code
    message = batched_message if ctx.version >= _BATCHED_SINCE else code.message
    return Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)
