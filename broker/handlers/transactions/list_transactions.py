"""ListTransactions, key 66, versions 0-2 (KIP-664)."""

from sluice.broker.broker import Broker
from sluice.broker.coordinator.transaction import metadata as states
from sluice.broker.coordinator.transaction.metadata import TransactionMetadata
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import list_transactions as api
from sluice.protocol.errors import ErrorCode
from sluice.text.regex import InvalidRegexError, Regex, compile_regex

API = served("ListTransactions", "0-2")

_STATES = {state.label: state for state in states.TransactionState}


def handle(ctx: RequestContext, request: api.ListTransactionsRequest, broker: Broker) -> api.ListTransactionsResponse:
    if broker.transactions.shards.is_loading:
        ctx.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return api.ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    expression = request.transactional_id_pattern or ""
    try:
        pattern = compile_regex(expression) if expression else None
    except InvalidRegexError:
        ctx.error_code = ErrorCode.INVALID_REGULAR_EXPRESSION
        return api.ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    listed = [
        api.TransactionState(
            transactional_id=metadata.transactional_id,
            producer_id=metadata.producer_id,
            transaction_state=metadata.state.label,
        )
        for metadata in ctx.array(broker.transactions)
        if _matches(request, metadata, ctx.now_ms)
        and (pattern is None or _fullmatch(ctx, pattern, metadata.transactional_id))
        and broker.auth.authorize(ctx, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, metadata.transactional_id)
    ]
    unknown = dict.fromkeys(name for name in request.state_filters if name not in _STATES)
    return api.ListTransactionsResponse(unknown_state_filters=list(unknown), transaction_states=listed)


def _fullmatch(ctx: RequestContext, pattern: Regex, transactional_id: str) -> bool:
    ctx.pause()  # a match can take 5 ms
    return pattern.fullmatch(transactional_id) is not None


def _matches(request: api.ListTransactionsRequest, metadata: TransactionMetadata, now_ms: int) -> bool:
    if request.producer_id_filters and metadata.producer_id not in request.producer_id_filters:
        return False
    if request.state_filters and metadata.state.label not in request.state_filters:
        return False
    # A transaction that has not started (-1) exceeds any duration, as in Kafka.
    return request.duration_filter < 0 or now_ms - metadata.start_ms > request.duration_filter
