"""SaslAuthenticate, key 36, versions 0-2 (KIP-152).

Outside an exchange it returns ILLEGAL_SASL_STATE, as KafkaApis does. Follows SaslServerAuthenticator.
"""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import Charge, served
from sluice.broker.security.sasl.mechanism import SaslError
from sluice.broker.security.sasl.refusal import refuse
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from sluice.protocol.codec.wire import LONGEST_STRING
from sluice.protocol.errors import ErrorCode

# A message can contain an authorization id, and only short strings can be encoded.
_LONGEST_MESSAGE = LONGEST_STRING // 4  # bytes of a character

API = served("SaslAuthenticate", "0-2", charge=Charge.NONE)


def handle(ctx: RequestContext, request: SaslAuthenticateRequest, broker: Broker) -> SaslAuthenticateResponse | Outcome:
    sasl = ctx.session.authentication
    if sasl is None or not sasl.expects_token():
        ctx.error_code = ErrorCode.ILLEGAL_SASL_STATE
        message = "SaslAuthenticate request received after successful authentication"
        return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=message)
    try:
        token = sasl.evaluate(request.auth_bytes, ctx.version)
    except SaslError as error:
        ctx.error_code = ErrorCode.SASL_AUTHENTICATION_FAILED
        response = SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=sasl.client_message(error)[:_LONGEST_MESSAGE]
        )
        return refuse(ctx, sasl, broker.scheduler, response, error.reason)
    return SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=sasl.session_lifetime_ms)
