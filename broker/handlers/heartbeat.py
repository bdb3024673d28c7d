"""Heartbeat, key 12, versions 0-4: a member of a classic group is alive, and asks whether it must join again.

v3 knows static members (KIP-345). Follows Kafka's GroupCoordinatorService.heartbeat.
"""

from sluice.broker.context import RequestContext
from sluice.protocol.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from sluice.protocol.errors import ErrorCode


def handle(ctx: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    """REBALANCE_IN_PROGRESS for a member that must join again; another error for one that is none (any more)."""
    error = ctx.broker.groups.classic.heartbeat(request) if request.group_id else ErrorCode.INVALID_GROUP_ID
    ctx.error_code = error
    return HeartbeatResponse(error_code=error)
