"""ConsumerGroupHeartbeat, key 68, versions 0-1 (KIP-848).

Follows Kafka's GroupCoordinatorService.consumerGroupHeartbeat.
"""

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.group import HeartbeatError
from sluice.broker.handlers.replicated_response import ReplicationErrors, respond_when_replicated
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("ConsumerGroupHeartbeat", "0-1")


def handle(ctx: RequestContext, request: ConsumerGroupHeartbeatRequest, broker: Broker) -> Message | Outcome:
    topics = request.subscribed_topic_names or ()
    if not broker.serves_groups("consumer"):
        return _error_response(ctx, ErrorCode.UNSUPPORTED_VERSION)
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return _error_response(ctx, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, topics):
        return _error_response(ctx, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    response = broker.groups.consumer.heartbeat(ctx, request)
    if isinstance(response, HeartbeatError):
        return _error_response(ctx, *response)

    def respond(errors: ReplicationErrors) -> ConsumerGroupHeartbeatResponse:
        return _error_response(ctx, errors[request.group_id]) if errors else response

    return respond_when_replicated(ctx, broker, [request.group_id], respond)


def _error_response(ctx: RequestContext, code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    ctx.error_code = code
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message)
