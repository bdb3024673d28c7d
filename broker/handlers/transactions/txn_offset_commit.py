"""TxnOffsetCommit, key 28, versions 0-6 (KIP-98).

Follows KafkaApis.handleTxnOffsetCommitRequest and CoordinatorPartitionWriter.maybeStartTransactionVerification.
"""

from operator import attrgetter

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.coordinator import Producer
from sluice.broker.coordinator.group.group import Commit, NewOffset
from sluice.broker.handlers.groups.replicated_response import ReplicationErrors, respond_when_replicated
from sluice.broker.handlers.groups.topic_lookup import authorized_topics, merge_topics, partition_error
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.batch import NO_SEQUENCE

from .verification import verify

API = served("TxnOffsetCommit", "0-6")

_ABORTABLE_SINCE = 4
_ADDS_PARTITION_SINCE = 5
_TOPIC_IDS_SINCE = 6


def handle(ctx: RequestContext, request: TxnOffsetCommitRequest, broker: Broker) -> Message | Outcome:
    new: list[NewOffset] = ctx.array()
    pending: list[TxnOffsetCommitResponsePartition] = ctx.array()  # results whose error code the coordinator returns
    if denied := _denied(ctx, broker, request):
        return _error_response(ctx, request, denied)
    found = authorized_topics(
        ctx,
        broker,
        ((topic.name, topic.topic_id) for topic in request.topics),
        by_id=ctx.version >= _TOPIC_IDS_SINCE,
    )
    failed_topics: list[TxnOffsetCommitResponseTopic] = ctx.array()
    accepted_topics: list[TxnOffsetCommitResponseTopic] = ctx.array()
    for requested, topic in zip(request.topics, found, strict=True):
        failed: list[TxnOffsetCommitResponsePartition] = []
        accepted: list[TxnOffsetCommitResponsePartition] = []
        for one in requested.partitions:
            error = partition_error(topic, one.partition_index)
            result = TxnOffsetCommitResponsePartition(partition_index=one.partition_index, error_code=error)
            (failed if error else accepted).append(result)
            ctx.error_code = ctx.error_code or error
            if not isinstance(topic, ErrorCode) and not error:
                metadata = one.committed_metadata or ""
                offset, epoch = one.committed_offset, one.committed_leader_epoch
                new.append(NewOffset(topic, one.partition_index, offset, epoch, metadata))
                pending.append(result)
        name, topic_id = requested.name, requested.topic_id
        if failed or isinstance(topic, ErrorCode):
            failed_topics.append(TxnOffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=failed))
        if accepted:
            accepted_topics.append(TxnOffsetCommitResponseTopic(name=name, topic_id=topic_id, partitions=accepted))
    topics = merge_topics(ctx, failed_topics, accepted_topics, attrgetter("name", "topic_id"))

    def respond(error: ErrorCode) -> Message | Outcome:
        codes = [error] * len(new) if error else _commit(ctx, broker, request, new)
        for result, code in zip(pending, codes, strict=True):
            result.error_code = code
        ctx.free(new)
        committed = any(not code for code in codes)
        return (
            respond_when_replicated(ctx, broker, [request.group_id], build_response)
            if committed
            else build_response({})
        )

    def build_response(errors: ReplicationErrors) -> TxnOffsetCommitResponse:
        for result in pending if errors else ():
            result.error_code = result.error_code or errors[request.group_id]
        ctx.error_code = ctx.error_code or next((one.error_code for one in pending if one.error_code), 0)
        return TxnOffsetCommitResponse(topics=topics)

    def on_verified(code: ErrorCode) -> Message | Outcome:
        if code == ErrorCode.TRANSACTION_ABORTABLE and ctx.version < _ABORTABLE_SINCE:
            code = ErrorCode.INVALID_TXN_STATE
        # Clients retry an offset commit after COORDINATOR_LOAD_IN_PROGRESS, but may not after NETWORK_EXCEPTION.
        return respond(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if code == ErrorCode.NETWORK_EXCEPTION else code)

    if not new:
        return respond(ErrorCode.NONE)
    if not request.group_id:
        return respond(ErrorCode.INVALID_GROUP_ID)
    error = broker.groups.error(request.group_id)
    if error:
        return respond(error)
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


def _denied(ctx: RequestContext, broker: Broker, request: TxnOffsetCommitRequest) -> ErrorCode:
    if not broker.auth.authorize(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _error_response(ctx: RequestContext, request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    ctx.error_code = code
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=one.partition_index, error_code=code)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _commit(
    ctx: RequestContext, broker: Broker, request: TxnOffsetCommitRequest, new: list[NewOffset]
) -> list[ErrorCode]:
    if not new:
        return []
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
    return broker.groups.commit_in_transaction(ctx, commit, producer)
