"""EndTxn, key 26, versions 0-5 (KIP-98).

The response is sent after the decision, possibly before the markers are written.
"""

from sluice.broker.broker import Broker
from sluice.broker.coordinator.transaction.coordinator import ProducerResult
from sluice.broker.coordinator.transaction.metadata import EPOCH_RAISING_CLIENT, LEGACY_CLIENT
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.end_txn import EndTxnRequest, EndTxnResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("EndTxn", "0-5")

_FENCED_SINCE = 2
_RAISES_EPOCH_SINCE = 5


def handle(ctx: RequestContext, request: EndTxnRequest, broker: Broker) -> Message | Outcome:
    if not broker.auth.authorize(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        ctx.error_code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    client_version = EPOCH_RAISING_CLIENT if ctx.version >= _RAISES_EPOCH_SINCE else LEGACY_CLIENT

    def respond(result: ProducerResult) -> Message:
        code = result.error_code
        if code == ErrorCode.PRODUCER_FENCED and ctx.version < _FENCED_SINCE:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        ctx.error_code = code
        return EndTxnResponse(error_code=code, producer_id=result.producer_id, producer_epoch=result.producer_epoch)

    return respond_when_done(
        ctx,
        lambda done: broker.transactions.end_transaction(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            request.committed,
            client_version,
            done,
        ),
        respond,
    )
