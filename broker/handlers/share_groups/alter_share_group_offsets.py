"""AlterShareGroupOffsets, key 91, version 0 (KIP-932). Follows KafkaApis.handleAlterShareGroupOffsetsRequest."""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import chain

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.share.offsets import AlterDone
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import alter_share_group_offsets as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID

from .acknowledgements import access_error

API = served("AlterShareGroupOffsets", "0")


def handle(ctx: RequestContext, request: api.AlterShareGroupOffsetsRequest, broker: Broker) -> Message | Outcome:
    error = access_error(ctx, broker, AclOperation.READ, request.group_id)
    if not error and not request.group_id:
        error = ErrorCode.INVALID_GROUP_ID
    if error:
        ctx.error_code = error
        return api.AlterShareGroupOffsetsResponse(error_code=error, error_message=error.message)
    denied = broker.auth.filter_denied(
        ctx, AclOperation.READ, ResourceType.TOPIC, (topic.topic_name for topic in request.topics)
    )
    failed: list[api.AlterShareGroupOffsetsResponseTopic] = ctx.array()
    accepted: list[api.AlterShareGroupOffsetsRequestTopic] = ctx.array()
    for topic in request.topics:
        if topic.topic_name in denied:
            failed.append(_failed(ctx, broker, topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif topic.topic_name not in broker.metadata.topics:
            failed.append(_failed(ctx, broker, topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            accepted.append(topic)

    def start(done: AlterDone) -> None:
        broker.groups.share_offsets.alter(request.group_id, accepted, done, ctx.sliced)

    return respond_when_done(ctx, start, partial(_respond, ctx, failed))


def _respond(
    ctx: RequestContext,
    failed: list[api.AlterShareGroupOffsetsResponseTopic],
    build: Callable[[], api.AlterShareGroupOffsetsResponse],
) -> api.AlterShareGroupOffsetsResponse:
    response = build()
    if not response.error_code:
        failed = [topic for topic in failed if topic.partitions]
        response.responses = ctx.array(_once(ctx, chain(failed, response.responses)))
    partitions = (one for topic in response.responses for one in ctx.sliced(topic.partitions))
    ctx.error_code = response.error_code or next((one.error_code for one in partitions if one.error_code), 0)
    return response


def _once(
    ctx: RequestContext, topics: Iterable[api.AlterShareGroupOffsetsResponseTopic]
) -> Collection[api.AlterShareGroupOffsetsResponseTopic]:
    found: dict[str, api.AlterShareGroupOffsetsResponseTopic] = {}
    for topic in ctx.sliced(topics):
        first = found.setdefault(topic.topic_name, topic)
        if first is not topic:
            first.partitions.extend(ctx.sliced(topic.partitions))
    return found.values()


def _failed(
    ctx: RequestContext, broker: Broker, requested: api.AlterShareGroupOffsetsRequestTopic, error: ErrorCode
) -> api.AlterShareGroupOffsetsResponseTopic:
    topic = broker.metadata.topics.get(requested.topic_name)
    return api.AlterShareGroupOffsetsResponseTopic(
        topic_name=requested.topic_name,
        topic_id=ZERO_UUID if topic is None else topic.topic_id,
        partitions=[
            api.AlterShareGroupOffsetsResponsePartition(
                partition_index=one.partition_index, error_code=error, error_message=error.message
            )
            for one in requested.partitions
        ],
    )
