"""SaslHandshake, key 17, versions 0-1: the mechanism by which the client wants to say who it is (KIP-43).

After version 0 tokens come without headers, after version 1 in SaslAuthenticate (KIP-152). Where nobody has to
authenticate, or has done it for good, the answer is ILLEGAL_SASL_STATE, as KafkaApis has it; the rest follows
SaslServerAuthenticator.
"""

from typing import TYPE_CHECKING

from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import Charge, served
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from sluice.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from sluice.broker.handlers.services import SecurityServices

API = served("SaslHandshake", "0-1", charge=Charge.NONE)


def handle(
    ctx: RequestContext, request: SaslHandshakeRequest, broker: "SecurityServices"
) -> SaslHandshakeResponse | Outcome:
    """The mechanisms there are; UNSUPPORTED_SASL_MECHANISM, and the end, where the one asked for is none of them."""
    sasl = ctx.authenticator
    if sasl is None or not sasl.expects_handshake():
        ctx.error_code = ErrorCode.ILLEGAL_SASL_STATE
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    if sasl.choose(request.mechanism, ctx.version):
        return SaslHandshakeResponse(mechanisms=sasl.mechanisms)
    ctx.error_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    response = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=sasl.mechanisms)
    return sasl.refuse(ctx, response, f"the mechanism is not enabled, which are {', '.join(sasl.mechanisms)}")
