"""A request handler in front of the SaslAuthenticator of a connection whose SASL exchange a rule stalls.

The stalled request and all later ones wait until the rule ends.
"""

from typing import TYPE_CHECKING, Literal

from sluice.broker.requests.context import RequestContext
from sluice.clock import Clock
from sluice.protocol.apis import ApiKey

if TYPE_CHECKING:
    from sluice.broker.network.connection import Connection

_API_KEY_BYTES = 2


class StalledSasl:
    def __init__(self, connection: "Connection", at: Literal["handshake", "authenticate"]) -> None:
        self._connection = connection
        self._sasl = connection.request_handler
        self._at = at
        self._stalled: bytes | None = None

    @property
    def clock(self) -> Clock:
        return self._sasl.clock

    def begin_read(self, ctx: RequestContext) -> float:
        return self._sasl.begin_read(ctx)

    def end_read(self) -> None:
        self._sasl.end_read()

    def dispatch(self, ctx: RequestContext, view: memoryview, start: int, end: int) -> None:
        if self._stalls(view, start, end):
            self._stalled = bytes(view[start:end])
            self._connection.park(self._forget)
        else:
            self._sasl.dispatch(ctx, view, start, end)

    def resume(self) -> None:
        connection = self._connection
        connection.request_handler = self._sasl
        request, self._stalled = self._stalled, None
        if request is None or connection.closed:
            return
        ctx = connection.ctx
        self._sasl.begin_read(ctx)
        connection.unpark()
        self._sasl.dispatch(ctx, memoryview(request), 0, len(request))
        if not connection.waiting:
            connection.resume()
        self._sasl.end_read()

    def _stalls(self, view: memoryview, start: int, end: int) -> bool:
        authentication = self._connection.ctx.session.authentication
        if self._at == "authenticate" and authentication is not None and authentication.expects_token():
            return True  # SaslAuthenticate, or a token without a header
        api_key = int.from_bytes(view[start : start + _API_KEY_BYTES])
        if self._at == "handshake":
            return api_key == ApiKey.SASL_HANDSHAKE
        return authentication is None and api_key == ApiKey.SASL_AUTHENTICATE  # with an upstream broker

    def _forget(self) -> None:
        self._stalled = None
