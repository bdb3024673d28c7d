"""LeaveGroup, key 13, versions 0-5. Follows Kafka's GroupCoordinatorService.leaveGroup.

The reason (KIP-800) is ignored.
"""

from collections.abc import Sequence

from sluice.broker.broker import Broker
from sluice.broker.handlers.replicated_response import ReplicationErrors, respond_when_replicated
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("LeaveGroup", "0-5")

_BATCHED_SINCE = 3
# Members that leave together, before other requests are served: 2 ms.
_AT_ONCE = 500


def handle(ctx: RequestContext, request: LeaveGroupRequest, broker: Broker) -> Message | Outcome:
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        ctx.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        ctx.error_code = ErrorCode.INVALID_GROUP_ID
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    batched = ctx.version >= _BATCHED_SINCE
    leaving = request.members if batched else [MemberIdentity(member_id=request.member_id)]
    members = _leave(ctx, broker, request.group_id, leaving)
    if isinstance(members, ErrorCode):
        ctx.error_code = members
        return LeaveGroupResponse(error_code=members)
    ctx.error_code = next((member.error_code for member in members if member.error_code), ErrorCode.NONE)

    def respond(errors: ReplicationErrors) -> LeaveGroupResponse:
        if errors:
            ctx.error_code = errors[request.group_id]
            return LeaveGroupResponse(error_code=ctx.error_code)
        if batched:
            return LeaveGroupResponse(members=members)
        return LeaveGroupResponse(error_code=members[0].error_code)

    return respond_when_replicated(ctx, broker, [request.group_id], respond)


def _leave(
    ctx: RequestContext, broker: Broker, group_id: str, leaving: Sequence[MemberIdentity]
) -> list[MemberResponse] | ErrorCode:
    members: list[MemberResponse] = []
    for start in range(0, max(len(leaving), 1), _AT_ONCE):
        left = broker.groups.classic_protocol(group_id).leave(group_id, leaving[start : start + _AT_ONCE])
        if isinstance(left, ErrorCode):
            return left
        members += left
        ctx.pause()
    return members
