"""InitProducerId, key 22, versions 0-5: a producer id for an idempotent producer (KIP-98). v3 lets a producer name the
id it has (KIP-360); without a transactional id it gets a new one all the same, as in Kafka's TransactionCoordinator.
"""

from sluice.broker.context import RequestContext
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sluice.protocol.errors import ErrorCode


def handle(ctx: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    """A new id with epoch 0; INVALID_REQUEST for a transactional id, since transactions are not served, and for an id
    without epoch or an epoch without id.
    """
    if request.transactional_id is not None or (request.producer_id == -1) != (request.producer_epoch == -1):
        ctx.error_code = ErrorCode.INVALID_REQUEST
        return InitProducerIdResponse(error_code=ErrorCode.INVALID_REQUEST, producer_epoch=-1)
    return InitProducerIdResponse(producer_id=ctx.broker.new_producer_id())
