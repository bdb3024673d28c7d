"""SASL authentication of clients that passes through the proxy to the upstream broker.

After SaslHandshake v0, tokens are frames without headers, and so are their responses.
"""

from struct import Struct

from sluice.broker.exchange.routes import Routes
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from sluice.protocol.message import Message
from sluice.proxy.upstream.connection import ForwardedContext, InFlight

from .sasl.observer import SaslObserver

_api_and_version_in = Struct(">I").unpack_from
# Fixed fields, and the length of the client id.
_LEAST_HEADER_BYTES = 10
# Since this version of SaslHandshake, tokens are sent in requests and responses (KIP-152).
_HEADERS_SINCE = 1


class SaslPassthrough:
    """Sets the users of one broker's clients."""

    def __init__(self, routes: Routes, principal_claim: str) -> None:
        self._routes = routes
        self._principal_claim = principal_claim
        self._unread_mechanisms: set[str] = set()

    def read_handshake(self, ctx: ForwardedContext, sent: InFlight, response: Message) -> bool:
        assert isinstance(response, SaslHandshakeResponse)
        if isinstance(sent.request, SaslHandshakeRequest) and not response.error_code:
            if ctx.sasl is None:
                ctx.sasl = SaslObserver(self._principal_claim, self._unread_mechanisms)
            ctx.sasl.handshake(sent.request.mechanism)
            ctx.upstream.passes_tokens = sent.version < _HEADERS_SINCE
        return False

    def read_authenticate(self, ctx: ForwardedContext, sent: InFlight, response: Message) -> bool:
        assert isinstance(response, SaslAuthenticateResponse)
        if isinstance(sent.request, SaslAuthenticateRequest) and ctx.sasl is not None:
            ctx.sasl.client_token(sent.request.auth_bytes)
            if not response.error_code:
                _set_user(ctx, ctx.sasl.broker_token(response.auth_bytes))
        return False

    def is_token(self, ctx: ForwardedContext, view: memoryview, start: int, end: int) -> bool:
        """Return whether a frame is a token of the client, while it sends tokens without headers.

        An exchange by a mechanism that the proxy cannot read ends with the first frame that begins like a request. No
        token of Kerberos does.
        """
        sasl = ctx.sasl
        assert sasl is not None
        is_long_enough = end - start >= _LEAST_HEADER_BYTES
        if not sasl.is_readable and is_long_enough and self._routes.find(*_api_and_version_in(view, start)):
            ctx.upstream.passes_tokens = False
            return False
        sasl.client_token(bytes(view[start:end]))
        return True

    def read_token(self, ctx: ForwardedContext, token: bytes) -> None:
        sasl = ctx.sasl
        assert sasl is not None
        _set_user(ctx, sasl.broker_token(token))
        if sasl.is_complete:
            ctx.upstream.passes_tokens = False


def _set_user(ctx: ForwardedContext, user: str | None) -> None:
    if user is not None:
        ctx.session.set_user(user)
