"""ShareGroupHeartbeat, key 76, version 1 (KIP-932).

Follows Kafka's GroupCoordinatorService.shareGroupHeartbeat; see broker/coordinator/group/share/heartbeat.py.
"""

from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.group import HeartbeatError
from sluice.broker.handlers.replicated_response import respond_after_change
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.share_group_heartbeat import ShareGroupHeartbeatRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .acknowledgements import access_error

API = served("ShareGroupHeartbeat", "1")

_LONGEST_MEMBER_ID = 36  # a UUID with hyphens


def handle(ctx: RequestContext, request: ShareGroupHeartbeatRequest, broker: Broker) -> Message | Outcome:
    if error := access_error(ctx, broker, AclOperation.READ, request.group_id):
        return failed(ctx, request, error)
    if not 0 < len(request.member_id) <= _LONGEST_MEMBER_ID:
        return failed(ctx, request, ErrorCode.INVALID_REQUEST)
    topics = request.subscribed_topic_names or ()
    if broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, topics):
        return failed(ctx, request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    response = broker.groups.share.heartbeat(ctx, request)
    if isinstance(response, HeartbeatError):
        return failed(ctx, request, *response)
    return respond_after_change(ctx, broker, request.group_id, response, partial(failed, ctx, request))
