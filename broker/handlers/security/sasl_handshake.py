"""SaslHandshake, key 17, versions 0-1 (KIP-43).

Returns ILLEGAL_SASL_STATE on listeners without SASL and after authentication, as KafkaApis does. Follows
SaslServerAuthenticator.
"""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import Charge, served
from sluice.broker.security.sasl.refusal import refuse
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from sluice.protocol.errors import ErrorCode

API = served("SaslHandshake", "0-1", charge=Charge.NONE)


def handle(ctx: RequestContext, request: SaslHandshakeRequest, broker: Broker) -> SaslHandshakeResponse | Outcome:
    sasl = ctx.session.authentication
    if sasl is None or not sasl.expects_handshake():
        ctx.error_code = ErrorCode.ILLEGAL_SASL_STATE
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    if sasl.choose(request.mechanism, ctx.version):
        return SaslHandshakeResponse(mechanisms=sasl.mechanisms)
    ctx.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    response = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=sasl.mechanisms)
    reason = f"SASL mechanism not enabled; expected one of {', '.join(sasl.mechanisms)}"
    return refuse(ctx, sasl, broker.scheduler, response, reason)
