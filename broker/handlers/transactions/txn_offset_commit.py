"""TxnOffsetCommit, key 28, versions 0-6 (KIP-98).

Follows KafkaApis.handleTxnOffsetCommitRequest and CoordinatorPartitionWriter.maybeStartTransactionVerification.
"""

from collections.abc import Iterable
from itertools import repeat

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.coordinator import Producer
from sluice.broker.coordinator.group.group import Commit, NewOffset
from sluice.broker.handlers.groups.topic_lookup import Topics, check_partitions, fail_partitions
from sluice.broker.handlers.replicated_response import ReplicationErrors, respond_when_replicated
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.protocol.apis import txn_offset_commit as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.batch import NO_SEQUENCE

from .add_offsets_to_txn import access_error
from .verification import verify

API = served("TxnOffsetCommit", "0-6")

_LOADING_SINCE = 2
_ABORTABLE_SINCE = 4
_ADDS_PARTITION_SINCE = 5
_TOPIC_IDS_SINCE = 6
_Result = api.TxnOffsetCommitResponsePartition


def handle(ctx: RequestContext, request: api.TxnOffsetCommitRequest, broker: Broker) -> Message | Outcome:
    requested = ((topic.name, topic.topic_id, topic.partitions) for topic in request.topics)
    if denied := access_error(ctx, broker, request):
        ctx.error_code = denied
        return _response(fail_partitions(ctx, requested, _Result, denied))
    topics, accepted = check_partitions(ctx, broker, requested, _Result, by_id=ctx.version >= _TOPIC_IDS_SINCE)

    def respond(error: ErrorCode) -> Message | Outcome:
        new = ctx.array(
            NewOffset(
                topic,
                one.partition_index,
                one.committed_offset,
                one.committed_leader_epoch,
                one.committed_metadata or "",
            )
            for topic, one, _ in accepted
        )
        codes = repeat(error, len(new)) if error else _commit(ctx, broker, request, new)
        for (_, _, result), code in zip(accepted, codes, strict=True):
            loads = code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and ctx.version < _LOADING_SINCE
            result.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE if loads else code
        committed = any(not result.error_code for _, _, result in accepted)
        if not committed:
            return build_response({})
        return respond_when_replicated(ctx, broker, [request.group_id], build_response)

    def build_response(errors: ReplicationErrors) -> api.TxnOffsetCommitResponse:
        for _, _, result in accepted if errors else ():
            result.error_code = result.error_code or errors[request.group_id]
        ctx.error_code = ctx.error_code or next((one.error_code for _, _, one in accepted if one.error_code), 0)
        return _response(topics)

    def on_verified(code: ErrorCode) -> Message | Outcome:
        if code == ErrorCode.TRANSACTION_ABORTABLE and ctx.version < _ABORTABLE_SINCE:
            code = ErrorCode.INVALID_TXN_STATE
        # Clients retry an offset commit after COORDINATOR_LOAD_IN_PROGRESS, but may not after NETWORK_EXCEPTION.
        return respond(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if code == ErrorCode.NETWORK_EXCEPTION else code)

    if not accepted:
        return respond(ErrorCode.NONE)
    if not request.group_id:
        return respond(ErrorCode.INVALID_GROUP_ID)
    if broker.groups.error(request.group_id) == ErrorCode.NOT_COORDINATOR:
        return respond(ErrorCode.NOT_COORDINATOR)
    shard = broker.groups.log.partition_of(request.group_id)
    return respond_when_done(
        ctx,
        lambda done: verify(
            broker,
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            {shard: NO_SEQUENCE},
            ctx.version >= _ADDS_PARTITION_SINCE,
            lambda errors: done(errors.get(shard, ErrorCode.NONE)),
        ),
        on_verified,
    )


def _response(topics: Topics[_Result]) -> api.TxnOffsetCommitResponse:
    return api.TxnOffsetCommitResponse(topics=[api.TxnOffsetCommitResponseTopic(*topic) for topic in topics])


def _commit(
    ctx: RequestContext, broker: Broker, request: api.TxnOffsetCommitRequest, new: list[NewOffset]
) -> Iterable[ErrorCode]:
    if not new:
        return ()
    commit = Commit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        ctx.version,
        new,
        transactional=True,
    )
    producer = Producer(request.producer_id, request.producer_epoch)
    return broker.groups.commit_offsets(ctx, commit, producer=producer)
