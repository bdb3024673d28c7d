"""OffsetDelete, key 47, version 0 (KIP-496).

Follows KafkaApis.handleOffsetDeleteRequest and OffsetMetadataManager.deleteOffsets.
"""

from sluice.broker.broker import Broker
from sluice.broker.handlers.replicated_response import ReplicationErrors, respond_when_replicated
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import offset_delete as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID

from .topic_lookup import Accepted, check_partitions

API = served("OffsetDelete", "0")
# Offsets that are deleted together, before other requests are served: 2 ms.
_AT_ONCE = 1000

_Accepted = Accepted[api.OffsetDeleteRequestPartition, api.OffsetDeleteResponsePartition]


def handle(ctx: RequestContext, request: api.OffsetDeleteRequest, broker: Broker) -> Message | Outcome:
    if not broker.auth.authorize(ctx, AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        ctx.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return api.OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    topics, accepted = check_partitions(
        ctx,
        broker,
        ((topic.name, ZERO_UUID, topic.partitions) for topic in request.topics),
        api.OffsetDeleteResponsePartition,
        by_id=False,
    )
    group_error = _delete(ctx, broker, request.group_id, accepted)
    if group_error:
        ctx.error_code = group_error
        return api.OffsetDeleteResponse(error_code=group_error)

    def respond(errors: ReplicationErrors) -> api.OffsetDeleteResponse:
        if errors:
            ctx.error_code = errors[request.group_id]
            return api.OffsetDeleteResponse(error_code=ctx.error_code)
        ctx.error_code = ctx.error_code or next((one.error_code for _, _, one in accepted if one.error_code), 0)
        return api.OffsetDeleteResponse(
            topics=[api.OffsetDeleteResponseTopic(name=name, partitions=results) for name, _, results in topics]
        )

    return respond_when_replicated(ctx, broker, [request.group_id], respond)


def _delete(ctx: RequestContext, broker: Broker, group_id: str, existing: _Accepted) -> ErrorCode:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    start = 0
    while True:
        together = existing[start : start + _AT_ONCE]
        codes = broker.groups.delete_offsets(
            group_id, [(topic.name, one.partition_index) for topic, one, _ in together]
        )
        if isinstance(codes, ErrorCode):
            return codes
        for (_, _, result), code in zip(together, codes, strict=True):
            result.error_code = code
        start += len(together)
        if start == len(existing):
            return ErrorCode.NONE
        ctx.pause()
