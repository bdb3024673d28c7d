"""DescribeTransactions, key 65, version 0 (KIP-664)."""

from itertools import groupby

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import describe_transactions as api
from sluice.protocol.errors import ErrorCode

API = served("DescribeTransactions", "0")


def handle(
    ctx: RequestContext, request: api.DescribeTransactionsRequest, broker: Broker
) -> api.DescribeTransactionsResponse:
    return api.DescribeTransactionsResponse(
        transaction_states=[_describe(ctx, broker, name) for name in request.transactional_ids]
    )


def _describe(ctx: RequestContext, broker: Broker, transactional_id: str) -> api.TransactionState:
    if not broker.auth.authorize(ctx, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return _error_result(ctx, transactional_id, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not transactional_id:
        return _error_result(ctx, transactional_id, ErrorCode.INVALID_REQUEST)
    metadata = broker.transactions.get(transactional_id)
    if metadata is None:
        error = broker.transactions.shards.error(transactional_id)
        return _error_result(ctx, transactional_id, error or ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    names = {name.topic for name in metadata.partitions}
    hidden = broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    return api.TransactionState(
        transactional_id=transactional_id,
        transaction_state=metadata.state.label,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[
            api.TopicData(topic=topic, partitions=[name.partition for name in names])
            for topic, names in groupby(sorted(metadata.partitions), lambda name: name.topic)
            if topic not in hidden
        ],
    )


def _error_result(ctx: RequestContext, transactional_id: str, code: ErrorCode) -> api.TransactionState:
    ctx.error_code = ctx.error_code or code
    return api.TransactionState(transactional_id=transactional_id, error_code=code)
