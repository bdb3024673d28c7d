"""SyncGroup, key 14, versions 0-5. Follows KafkaApis.handleSyncGroupRequest and GroupCoordinatorService.syncGroup."""

from sluice.broker.broker import Broker
from sluice.broker.handlers.replicated_response import respond_after_change
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("SyncGroup", "0-5")

_PROTOCOL_SINCE = 5


def handle(ctx: RequestContext, request: SyncGroupRequest, broker: Broker) -> Message | Outcome:
    outcome = _sync(ctx, broker, request)
    if not isinstance(outcome, SyncGroupResponse):
        return outcome
    ctx.error_code = outcome.error_code
    if outcome.error_code:
        return outcome
    return respond_after_change(ctx, broker, request.group_id, outcome, lambda code: SyncGroupResponse(error_code=code))


def _sync(ctx: RequestContext, broker: Broker, request: SyncGroupRequest) -> SyncGroupResponse | Outcome:
    if ctx.version >= _PROTOCOL_SINCE and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return SyncGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    sent = request.assignments
    request.assignments = sent.copy()  # a plain list: the change of the group must not pause
    outcome = broker.groups.classic_protocol(request.group_id).sync(ctx, request)
    request.assignments = sent  # which is freed in slices
    return outcome
