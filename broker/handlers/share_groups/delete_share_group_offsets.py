"""DeleteShareGroupOffsets, key 92, version 0 (KIP-932).

Follows KafkaApis.handleDeleteShareGroupOffsetsRequest.
"""

from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.metadata.features import SHARE_VERSION
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("DeleteShareGroupOffsets", "0")

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def handle(ctx: RequestContext, request: DeleteShareGroupOffsetsRequest, broker: Broker) -> Message | Outcome:
    error = _error(ctx, request, broker)
    if error:
        return _respond(ctx, [], DeleteShareGroupOffsetsResponse(error_code=error, error_message=error.message))
    names = ctx.array(topic.topic_name for topic in request.topics)
    denied = broker.auth.filter_denied(ctx, AclOperation.READ, ResourceType.TOPIC, names)
    failed = [
        DeleteShareGroupOffsetsResponseTopic(topic_name=name, error_code=_DENIED, error_message=_DENIED.message)
        for name in names
        if name in denied
    ]
    accepted = [name for name in names if name not in denied]
    start = partial(broker.groups.share_offsets.delete, request.group_id, accepted)
    return respond_when_done(ctx, start, partial(_respond, ctx, failed))


def _error(ctx: RequestContext, request: DeleteShareGroupOffsetsRequest, broker: Broker) -> ErrorCode:
    if not broker.features.level(SHARE_VERSION):
        return ErrorCode.UNSUPPORTED_VERSION
    if not broker.auth.authorize(ctx, AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE if request.group_id else ErrorCode.INVALID_GROUP_ID


def _respond(
    ctx: RequestContext, failed: list[DeleteShareGroupOffsetsResponseTopic], response: DeleteShareGroupOffsetsResponse
) -> DeleteShareGroupOffsetsResponse:
    if not response.error_code:
        response.responses[:0] = failed
    ctx.error_code = response.error_code or next((one.error_code for one in response.responses if one.error_code), 0)
    return response
