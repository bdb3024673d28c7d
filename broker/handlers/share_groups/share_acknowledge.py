"""ShareAcknowledge, key 79, versions 1-2 (KIP-932). Follows KafkaApis.handleShareAcknowledgeRequest."""

from collections.abc import Callable

from sluice.broker.broker import Broker
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, TopicIdPartition
from sluice.protocol.apis import share_acknowledge as api
from sluice.protocol.apis.share_fetch import AcknowledgementBatch, LeaderIdAndEpoch
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .acknowledgements import Leaders, Results, acknowledge, member_of

API = served("ShareAcknowledge", "1-2")


def handle(ctx: RequestContext, request: api.ShareAcknowledgeRequest, broker: Broker) -> Message | Outcome:
    member = member_of(ctx, broker, request.group_id, request.member_id)
    if isinstance(member, ErrorCode):
        return _failed(ctx, member)
    shares = broker.share_partitions
    epoch = request.share_session_epoch
    session = ErrorCode.INVALID_SHARE_SESSION_EPOCH if epoch == INITIAL_EPOCH else shares.sessions.resume(member, epoch)
    if isinstance(session, ErrorCode):
        return _failed(ctx, session)
    requested: dict[TopicIdPartition, list[AcknowledgementBatch]] = ctx.mapping()
    for topic in request.topics:
        for one in topic.partitions:
            requested[topic.topic_id, one.partition_index] = one.acknowledgement_batches

    def start(done: Callable[[Results], None]) -> None:
        acknowledge(ctx, broker, member, requested, done, renews=request.is_renew_ack)

    def respond(results: Results) -> Message:
        if epoch == FINAL_EPOCH:
            shares.release(session)
        return _response(ctx, broker, member.group_id, results)

    return respond_when_done(ctx, start, respond)


def _response(ctx: RequestContext, broker: Broker, group_id: str, results: Results) -> api.ShareAcknowledgeResponse:
    leaders = Leaders(ctx, broker)
    topics: dict[bytes, list[api.PartitionData]] = ctx.mapping()
    for (topic_id, index), (code, message) in results.items():
        data = api.PartitionData(partition_index=index, error_code=code, error_message=message)
        data.current_leader = LeaderIdAndEpoch(*leaders.after(topic_id, index, code))
        ctx.error_code = ctx.error_code or code
        topics.setdefault(topic_id, []).append(data)
    return api.ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=broker.share_partitions.settings(group_id).record_lock_duration_ms,
        responses=[
            api.ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
        node_endpoints=list(leaders.endpoints.values()),
    )


def _failed(ctx: RequestContext, code: ErrorCode) -> api.ShareAcknowledgeResponse:
    ctx.error_code = code
    return api.ShareAcknowledgeResponse(error_code=code)
