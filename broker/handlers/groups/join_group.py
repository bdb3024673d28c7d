"""JoinGroup, key 11, versions 0-9. Follows Kafka's GroupCoordinatorService.joinGroup."""

from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.classic.member import count_names
from sluice.broker.coordinator.group.classic.protocol import join_error
from sluice.broker.handlers.replicated_response import respond_after_change
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.join_group import JoinGroupRequest, JoinGroupResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("JoinGroup", "0-9")

_REBALANCE_TIMEOUT_SINCE = 1


def handle(ctx: RequestContext, request: JoinGroupRequest, broker: Broker) -> Message | Outcome:
    if ctx.version < _REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    outcome = _join(ctx, broker, request)
    if not isinstance(outcome, JoinGroupResponse):
        return outcome
    ctx.error_code = outcome.error_code
    if outcome.error_code:
        return outcome
    return respond_after_change(ctx, broker, request.group_id, outcome, partial(join_error, ctx.version, ""))


def _join(ctx: RequestContext, broker: Broker, request: JoinGroupRequest) -> JoinGroupResponse | Outcome:
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return join_error(ctx.version, "", ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return join_error(ctx.version, request.member_id, ErrorCode.INVALID_GROUP_ID)
    config = broker.config
    shortest_ms = config.integer("group.min.session.timeout.ms")
    if not shortest_ms <= request.session_timeout_ms <= config.integer("group.max.session.timeout.ms"):
        return join_error(ctx.version, request.member_id, ErrorCode.INVALID_SESSION_TIMEOUT)
    names = count_names(request.protocols, ctx.kept_mapping())  # pauses
    sent = request.protocols
    request.protocols = sent.copy()  # kept by the group, whose changes must not pause
    outcome = broker.groups.classic_protocol(request.group_id).join(ctx, request, names)
    request.protocols = sent  # which is freed in slices
    return outcome
