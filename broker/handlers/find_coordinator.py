"""FindCoordinator, key 10, versions 0-6: who coordinates a group. With one broker it is this one; v4 asks for many
(KIP-699). Follows KafkaApis.getCoordinator. Different on purpose: __consumer_offsets, which begins with the first such
request, is there at once, where Kafka answers COORDINATOR_NOT_AVAILABLE until it is.

There is no coordinator for transactions, so that a transactional producer fails here and not later.
"""

from sluice.broker.context import RequestContext
from sluice.protocol.apis.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from sluice.protocol.errors import ErrorCode

_GROUP = 0  # key type
_MANY_SINCE = 4


def handle(ctx: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """This broker, for each group; INVALID_REQUEST for other kinds of key."""
    keys = request.coordinator_keys if ctx.version >= _MANY_SINCE else [request.key]
    found = [_coordinator(ctx, request.key_type, key) for key in keys]
    if ctx.version >= _MANY_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    one = found[0]
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


def _coordinator(ctx: RequestContext, key_type: int, key: str) -> Coordinator:
    if key_type != _GROUP:
        ctx.error_code = ErrorCode.INVALID_REQUEST
        message = f"coordinators are found for groups (key type {_GROUP}) only, not for key type {key_type}"
        return Coordinator(key=key, node_id=-1, port=-1, error_code=ErrorCode.INVALID_REQUEST, error_message=message)
    _ = ctx.broker.groups.log.topic
    advertised = ctx.connection.advertised
    return Coordinator(
        key=key, node_id=ctx.broker.cluster.node_id, host=advertised.host, port=advertised.port, error_message=None
    )
