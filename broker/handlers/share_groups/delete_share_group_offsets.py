"""DeleteShareGroupOffsets, key 92, version 0 (KIP-932). Follows KafkaApis.handleDeleteShareGroupOffsetsRequest."""

from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import delete_share_group_offsets as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .acknowledgements import access_error

API = served("DeleteShareGroupOffsets", "0")

_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def handle(ctx: RequestContext, request: api.DeleteShareGroupOffsetsRequest, broker: Broker) -> Message | Outcome:
    error = access_error(ctx, broker, AclOperation.DELETE, request.group_id)
    if not error and not request.group_id:
        error = ErrorCode.INVALID_GROUP_ID
    if error:
        return _respond(ctx, [], api.DeleteShareGroupOffsetsResponse(error_code=error, error_message=error.message))
    names = ctx.array(topic.topic_name for topic in request.topics)
    denied = broker.auth.filter_denied(ctx, AclOperation.READ, ResourceType.TOPIC, names)
    failed = [
        api.DeleteShareGroupOffsetsResponseTopic(topic_name=name, error_code=_DENIED, error_message=_DENIED.message)
        for name in names
        if name in denied
    ]
    accepted = [name for name in names if name not in denied]
    start = partial(broker.groups.share_offsets.delete, request.group_id, accepted)
    return respond_when_done(ctx, start, partial(_respond, ctx, failed))


def _respond(
    ctx: RequestContext,
    failed: list[api.DeleteShareGroupOffsetsResponseTopic],
    response: api.DeleteShareGroupOffsetsResponse,
) -> api.DeleteShareGroupOffsetsResponse:
    if not response.error_code:
        response.responses[:0] = failed
    ctx.error_code = response.error_code or next((one.error_code for one in response.responses if one.error_code), 0)
    return response
