"""InitProducerId, key 22, versions 0-5 (KIP-98).

Without a transactional id, the response always has a new id, as in Kafka's TransactionCoordinator; with one, the
previous producer is fenced.
"""

from sluice.broker.broker import Broker
from sluice.broker.coordinator.transaction.coordinator import ProducerResult
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.errors import NotDurableError
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("InitProducerId", "0-5")  # 6 is unstable (two-phase commit)

_FENCED_SINCE = 4


def handle(ctx: RequestContext, request: InitProducerIdRequest, broker: Broker) -> Message | Outcome:
    denied_code = _unauthorized(ctx, broker, request.transactional_id)
    if denied_code:
        return _error_response(ctx, denied_code)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        return _error_response(ctx, ErrorCode.INVALID_REQUEST)
    try:
        if request.transactional_id is None:
            return InitProducerIdResponse(producer_id=broker.new_producer_id())
        return _initialize(ctx, broker, request, request.transactional_id)
    except NotDurableError:  # from a new block of ids
        return _error_response(ctx, ErrorCode.KAFKA_STORAGE_ERROR)


def _unauthorized(ctx: RequestContext, broker: Broker, transactional_id: str | None) -> ErrorCode:
    # Write access to any topic includes idempotent writes (KIP-679).
    if transactional_id is not None:
        authorized = broker.auth.authorize(ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        return ErrorCode.NONE if authorized else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    authorized = broker.auth.authorize_cluster(
        ctx, AclOperation.IDEMPOTENT_WRITE, log_denied=False
    ) or broker.auth.authorize_any(ctx, AclOperation.WRITE, ResourceType.TOPIC)
    return ErrorCode.NONE if authorized else ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _initialize(
    ctx: RequestContext, broker: Broker, request: InitProducerIdRequest, transactional_id: str
) -> Message | Outcome:
    expected = None if request.producer_id == -1 else (request.producer_id, request.producer_epoch)

    def respond(result: ProducerResult) -> Message:
        if result.error_code:
            return _error_response(ctx, result.error_code)
        return InitProducerIdResponse(producer_id=result.producer_id, producer_epoch=result.producer_epoch)

    return respond_when_done(
        ctx,
        lambda done: broker.transactions.init_producer_id(
            transactional_id, request.transaction_timeout_ms, expected, done
        ),
        respond,
    )


def _error_response(ctx: RequestContext, code: ErrorCode) -> InitProducerIdResponse:
    if code == ErrorCode.PRODUCER_FENCED and ctx.version < _FENCED_SINCE:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    ctx.error_code = code
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)
