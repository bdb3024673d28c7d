"""AddOffsetsToTxn, key 25, versions 0-4 (KIP-98): adds the group's partition of `__consumer_offsets`.

Clients of transaction version 2 do not send it.
"""

from sluice.broker.broker import Broker
from sluice.broker.coordinator.common.coordinator_log import java_hash
from sluice.broker.coordinator.transaction.metadata import LEGACY_CLIENT
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, TopicPartition
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from sluice.protocol.apis.txn_offset_commit import TxnOffsetCommitRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("AddOffsetsToTxn", "0-4")

_FENCED_SINCE = 2


def handle(ctx: RequestContext, request: AddOffsetsToTxnRequest, broker: Broker) -> Message | Outcome:
    denied_code = access_error(ctx, broker, request)
    if denied_code:
        ctx.error_code = denied_code
        return AddOffsetsToTxnResponse(error_code=denied_code)
    topic = broker.metadata.topics.get(GROUP_METADATA_TOPIC)
    count = broker.config.integer("offsets.topic.num.partitions") if topic is None else len(topic.partitions)
    name = TopicPartition(GROUP_METADATA_TOPIC, java_hash(request.group_id) % count)

    def respond(code: ErrorCode) -> Message:
        if code == ErrorCode.PRODUCER_FENCED and ctx.version < _FENCED_SINCE:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        ctx.error_code = code
        return AddOffsetsToTxnResponse(error_code=code)

    return respond_when_done(
        ctx,
        lambda done: broker.transactions.add_partitions(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            frozenset({name}),
            LEGACY_CLIENT,
            done,
        ),
        respond,
    )


def access_error(
    ctx: RequestContext, broker: Broker, request: AddOffsetsToTxnRequest | TxnOffsetCommitRequest
) -> ErrorCode:
    if not broker.auth.authorize(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE
