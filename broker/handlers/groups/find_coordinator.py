"""FindCoordinator, key 10, versions 0-6.

Follows KafkaApis.getCoordinator. Different on purpose: the first request creates the coordinator's topic at once; Kafka
returns COORDINATOR_NOT_AVAILABLE until it exists.
"""

from sluice.broker.broker import Broker
from sluice.broker.coordinator.common.coordinator_log import coordinator_of
from sluice.broker.coordinator.share.state import parse_coordinator_key
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from sluice.protocol.errors import ErrorCode

API = served("FindCoordinator", "0-6")

_GROUP, _TRANSACTION, _SHARE = range(3)
_TOPICS = {_GROUP: GROUP_METADATA_TOPIC, _TRANSACTION: TRANSACTION_STATE_TOPIC, _SHARE: SHARE_GROUP_STATE_TOPIC}
# Resource type of each key type, and the error without authorization.
_PROTECTED = {
    _GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    _TRANSACTION: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
}
_BATCHED_SINCE, _SHARE_SINCE = 4, 6


def handle(ctx: RequestContext, request: FindCoordinatorRequest, broker: Broker) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if ctx.version >= _BATCHED_SINCE else [request.key]
    found = [_coordinator(ctx, broker, request.key_type, key) for key in keys]
    if ctx.version >= _BATCHED_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    one = found[0]
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


def _coordinator(ctx: RequestContext, broker: Broker, key_type: int, key: str) -> Coordinator:
    if key_type not in _TOPICS:
        code = ErrorCode.INVALID_REQUEST
        return _error_result(ctx, key, code, code.message)
    if key_type == _SHARE and ctx.version < _SHARE_SINCE:
        return _error_result(ctx, key, ErrorCode.INVALID_REQUEST)
    if key_type == _SHARE and not broker.auth.authorize_cluster(ctx, AclOperation.CLUSTER_ACTION):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return _error_result(ctx, key, code, code.message)
    if key_type == _SHARE and parse_coordinator_key(key) is None:
        return _error_result(ctx, key, ErrorCode.INVALID_REQUEST)
    if key_type != _SHARE:
        resource_type, denied_code = _PROTECTED[key_type]
        if not broker.auth.authorize(ctx, AclOperation.DESCRIBE, resource_type, key):
            return _error_result(ctx, key, denied_code)
    coordinator = coordinator_of(broker, _TOPICS[key_type], key)
    if coordinator is None:
        return _error_result(ctx, key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    at = ctx.session.endpoint_of(coordinator)
    message = "" if ctx.version >= _BATCHED_SINCE else ErrorCode.NONE.name
    return Coordinator(key=key, node_id=coordinator.node_id, host=at.host, port=at.port, error_message=message)


def _error_result(ctx: RequestContext, key: str, code: ErrorCode, message: str = "") -> Coordinator:
    # Since v4, only errors that Kafka throws have a message.
    ctx.error_code = code
    if ctx.version < _BATCHED_SINCE:
        message = code.message
    return Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)
