"""ConsumerGroupHeartbeat, key 68, versions 0-1 (KIP-848).

Follows Kafka's GroupCoordinatorService.consumerGroupHeartbeat.
"""

from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.group import HeartbeatError
from sluice.broker.handlers.replicated_response import respond_after_change
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("ConsumerGroupHeartbeat", "0-1")


def handle(ctx: RequestContext, request: ConsumerGroupHeartbeatRequest, broker: Broker) -> Message | Outcome:
    topics = request.subscribed_topic_names or ()
    if not broker.serves_groups("consumer"):
        return failed(ctx, request, ErrorCode.UNSUPPORTED_VERSION)
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return failed(ctx, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, topics):
        return failed(ctx, request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    response = broker.groups.consumer.heartbeat(ctx, request)
    if isinstance(response, HeartbeatError):
        return failed(ctx, request, *response)
    return respond_after_change(ctx, broker, request.group_id, response, partial(failed, ctx, request))
